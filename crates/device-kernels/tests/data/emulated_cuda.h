// CUDA's words in C++20, so that the text of a kernel that wants tensor cores runs where there are none: a block has a thread for
// each unit, and each unit has the whole of a fragment. Slow, and meant to be obvious.
#include <barrier>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#define __global__
#define __shared__
#define __launch_bounds__(units)
#define __align__(bytes)

struct Place3 { uint32_t x = 0, y = 0, z = 0; };
static thread_local Place3 threadIdx;
static Place3 blockIdx, blockDim;
extern "C" { alignas(64) unsigned char dynamic_shared_mem[65536]; }
static constexpr uint32_t UNITS = 256;
static std::barrier<> *together;
static void __syncthreads() { together->arrive_and_wait(); }

struct __nv_bfloat16 {
    uint16_t bits = 0;
    __nv_bfloat16() = default;
    // To the nearest, ties to the even one.
    explicit __nv_bfloat16(float x) {
        uint32_t all = std::bit_cast<uint32_t>(x);
        bool nan = (all & 0x7fffffffu) > 0x7f800000u;
        bits = nan ? 0x7fff : (all + 0x7fffu + ((all >> 16) & 1)) >> 16;
    }
    operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
};

// IEEE 754's binary16; the compiler rounds to the nearest, ties to the even one.
struct __half {
    _Float16 value = 0;
    __half() = default;
    explicit __half(float x) : value(static_cast<_Float16>(x)) {}
    operator float() const { return static_cast<float>(value); }
};

namespace nvcuda::wmma {
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major { static constexpr bool rows = true; };
struct col_major { static constexpr bool rows = false; };
enum layout_t { mem_row_major, mem_col_major };

template <typename Use, int M, int N, int K, typename T, typename Layout = row_major>
struct fragment { float at[16][16]; };

template <typename F> void fill_fragment(F &f, float x) {
    for (auto &row : f.at) for (float &entry : row) entry = x;
}
// What a card wants of an address and a stride is demanded here too.
template <typename T> void aligned(const T *from, uint32_t stride) {
    if (reinterpret_cast<uintptr_t>(from) % 32 != 0 || stride * sizeof(T) % 16 != 0) {
        fprintf(stderr, "a fragment at an address that tensor cores do not load from\n");
        exit(3);
    }
}
template <typename Use, int M, int N, int K, typename T, typename Layout>
void load_matrix_sync(fragment<Use, M, N, K, T, Layout> &f, const T *from, uint32_t stride) {
    aligned(from, stride);
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 16; c++) f.at[r][c] = float(Layout::rows ? from[r * stride + c] : from[c * stride + r]);
}
template <typename F> void store_matrix_sync(float *to, const F &f, uint32_t stride, layout_t layout) {
    aligned(to, stride);
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 16; c++) to[layout == mem_row_major ? r * stride + c : c * stride + r] = f.at[r][c];
}
template <typename D, typename A, typename B, typename C> void mma_sync(D &d, const A &a, const B &b, const C &c) {
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            float sum = c.at[i][j];
            for (int k = 0; k < 16; k++) sum += a.at[i][k] * b.at[k][j];
            d.at[i][j] = sum;
        }
}
}  // namespace nvcuda::wmma

// Runs a kernel of three buffers and its scalars on all blocks of a grid: from standard input the grid, the number of
// scalars and the lengths of the buffers, then the scalars and the buffers; to standard output the last buffer.
template <typename Kernel> int run(Kernel kernel) {
    uint32_t head[7];
    if (fread(head, 4, 7, stdin) != 7) return 2;
    std::vector<uint32_t> info(head[3] + 64);
    std::vector<float> buffers[3];
    if (fread(info.data(), 4, head[3], stdin) != head[3]) return 2;
    for (int b = 0; b < 3; b++) {
        buffers[b].resize(head[4 + b]);
        if (fread(buffers[b].data(), 4, head[4 + b], stdin) != head[4 + b]) return 2;
    }
    blockDim = {UNITS, 1, 1};
    for (blockIdx.z = 0; blockIdx.z < head[2]; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < head[1]; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < head[0]; blockIdx.x++) {
                std::barrier<> all(UNITS);
                together = &all;
                std::vector<std::jthread> units;
                for (uint32_t unit = 0; unit < UNITS; unit++)
                    units.emplace_back([&, unit] {
                        threadIdx = {unit, 0, 0};
                        kernel(buffers[0].data(), buffers[1].data(), buffers[2].data(), info.data());
                    });
            }
    fwrite(buffers[2].data(), 4, buffers[2].size(), stdout);
    return 0;
}
