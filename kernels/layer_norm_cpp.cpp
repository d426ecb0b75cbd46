// Layer norm of each row, with mean and variance in two passes.
#include <cmath>

void layer_norm(const float* x, const float* weight, const float* bias, float* out, int64_t rows, int64_t hidden,
                float eps) {
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * hidden;
        float* to = out + row * hidden;
        float sum = 0.0f;
        for (int64_t j = 0; j < hidden; ++j) sum += in[j];
        const float mean = sum / float(hidden);
        float squares = 0.0f;
        for (int64_t j = 0; j < hidden; ++j) squares += (in[j] - mean) * (in[j] - mean);
        const float scale = 1.0f / std::sqrt(squares / float(hidden) + eps);
        for (int64_t j = 0; j < hidden; ++j) to[j] = (in[j] - mean) * scale * weight[j] + bias[j];
    }
}
