// Softmax of each row: three passes, one row after the other.
#include <cmath>

void row_softmax(const float* x, float* out, int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * columns;
        float* to = out + row * columns;
        float top = in[0];
        for (int64_t j = 1; j < columns; ++j) top = in[j] > top ? in[j] : top;
        float sum = 0.0f;
        for (int64_t j = 0; j < columns; ++j) {
            const float e = std::exp(in[j] - top);
            to[j] = e;
            sum += e;
        }
        const float scale = 1.0f / sum;
        for (int64_t j = 0; j < columns; ++j) to[j] *= scale;
    }
}
