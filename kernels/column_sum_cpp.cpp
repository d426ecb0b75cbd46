// Sums over the rows of a matrix, a column at a time.
void column_sum(const float* x, float* out, int64_t rows, int64_t columns) {
    for (int64_t j = 0; j < columns; ++j) out[j] = 0.0f;
    for (int64_t j = 0; j < columns; ++j) {
        for (int64_t i = 0; i < rows; ++i) {
            out[j] += x[i * columns + j];
        }
    }
}
