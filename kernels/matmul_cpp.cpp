// c = a b in single precision, by blocks of the inner dimension and of columns.
void matmul(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m * n; ++i) c[i] = 0.0f;
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t j0 = 0; j0 < n; j0 += BLOCK_N) {
            for (int64_t l0 = 0; l0 < k; l0 += BLOCK_K) {
                const int64_t columns = j0 + BLOCK_N < n ? j0 + BLOCK_N : n;
                const int64_t depth = l0 + BLOCK_K < k ? l0 + BLOCK_K : k;
                for (int64_t j = j0; j < columns; ++j) {
                    for (int64_t l = l0; l < depth; ++l) {
                        c[i * n + j] += a[i * k + l] * b[l * n + j];
                    }
                }
            }
        }
    }
}
