// A kernel, and what an extension would call.
extern "C" __global__ void axpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
extern "C" int launch(float a, const float *x, float *y, int n) {
    axpy<<<(n + 255) / 256, 256>>>(a, x, y, n);
    return (int)cudaGetLastError();
}
