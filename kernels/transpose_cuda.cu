// out = x transposed, through a tile in shared memory.
extern "C" __global__ void transpose(const float* __restrict__ x, float* __restrict__ out, int rows, int columns) {
    __shared__ float tile[TILE][TILE];
    const int column = blockIdx.x * TILE + threadIdx.x;
    for (int r = threadIdx.y; r < TILE; r += ROWS_PER_PASS) {
        const int row = blockIdx.y * TILE + r;
        if (row < rows && column < columns) tile[r][threadIdx.x] = x[(long long)row * columns + column];
    }
    __syncthreads();
    const int row = blockIdx.y * TILE + threadIdx.x;
    for (int r = threadIdx.y; r < TILE; r += ROWS_PER_PASS) {
        const int across = blockIdx.x * TILE + r;
        if (row < rows && across < columns) out[(long long)across * rows + row] = tile[threadIdx.x][r];
    }
}
