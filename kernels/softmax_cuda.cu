// Softmax of each row by one block, three passes over the row.
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ out, int columns) {
    __shared__ float parts[THREADS];
    const float* in = x + (long long)blockIdx.x * columns;
    float* to = out + (long long)blockIdx.x * columns;
    float top = -3.0e38f;
    for (int c = threadIdx.x; c < columns; c += THREADS) top = fmaxf(top, in[c]);
    parts[threadIdx.x] = top;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] = fmaxf(parts[threadIdx.x], parts[threadIdx.x + half]);
        __syncthreads();
    }
    top = parts[0];
    __syncthreads();
    float sum = 0.0f;
    for (int c = threadIdx.x; c < columns; c += THREADS) sum += expf(in[c] - top);
    parts[threadIdx.x] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
        __syncthreads();
    }
    const float scale = 1.0f / parts[0];
    for (int c = threadIdx.x; c < columns; c += THREADS) to[c] = expf(in[c] - top) * scale;
}
