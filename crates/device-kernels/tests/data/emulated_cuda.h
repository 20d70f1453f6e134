// CUDA's words in C++20, so that the text of a kernel that wants tensor cores runs where there are none: a block has a thread for
// each unit. Of `wmma` each unit has the whole of a fragment; of `mma.sync` and `ldmatrix`, which a text defines in PTX and whose
// definitions are cut out of it, the units of a warp have their parts, as the PTX ISA lays them out. Slow, and meant to be obvious.
#include <array>
#include <barrier>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#define __global__
#define __shared__
#define __launch_bounds__(units)
#define __align__(bytes)

struct Place3 { uint32_t x = 0, y = 0, z = 0; };
static thread_local Place3 threadIdx;
static Place3 blockIdx, blockDim;
extern "C" { alignas(64) unsigned char dynamic_shared_mem[98304]; }
static constexpr uint32_t WARP = 32;
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

struct __nv_bfloat162 { __nv_bfloat16 x, y; };
struct __half2 { __half x, y; };

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

// What the units of a warp give each other.
struct Warp {
    std::barrier<> all{WARP};
    std::array<const void *, WARP> rows;
    std::array<std::array<uint32_t, 6>, WARP> registers;
};
static std::vector<std::unique_ptr<Warp>> warps;
static Warp &own_warp() { return *warps[threadIdx.x / WARP]; }

// Four matrices of 8 × 8; the unit 8·i + r has told where row r of matrix i begins. A unit gets of each a pair of neighbours of row
// lane/4, or of column lane/4 where it is transposed.
template <bool TRANSPOSED> void ldmatrix(std::array<uint32_t *, 4> to, const void *row) {
    Warp &warp = own_warp();
    uint32_t lane = threadIdx.x % WARP;
    if (reinterpret_cast<uintptr_t>(row) % 16 != 0) {
        fprintf(stderr, "a row at an address that ldmatrix does not load from\n");
        exit(3);
    }
    warp.rows[lane] = row;
    warp.all.arrive_and_wait();
    for (uint32_t i = 0; i < 4; i++) {
        auto at = [&](uint32_t r, uint32_t c) -> uint32_t { return static_cast<const uint16_t *>(warp.rows[8 * i + r])[c]; };
        uint32_t own = lane / 4, pair = lane % 4 * 2;
        *to[i] = TRANSPOSED ? at(pair, own) | at(pair + 1, own) << 16 : at(own, pair) | at(own, pair + 1) << 16;
    }
    warp.all.arrive_and_wait();
}

// d ← a·b + c, 16 × 8 × 16: a by rows, b by columns.
template <typename T>
void mma(std::array<uint32_t, 4> a, std::array<uint32_t, 2> b, std::array<float, 4> c, std::array<float *, 4> d) {
    Warp &warp = own_warp();
    uint32_t lane = threadIdx.x % WARP;
    warp.registers[lane] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    warp.all.arrive_and_wait();
    auto number = [&](uint32_t from, uint32_t reg, uint32_t k) -> float {
        return std::bit_cast<T>(static_cast<uint16_t>(warp.registers[from][reg] >> (k % 2 * 16)));
    };
    for (uint32_t e = 0; e < 4; e++) {
        uint32_t row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
        float sum = c[e];
        for (uint32_t k = 0; k < 16; k++)
            sum += number(row % 8 * 4 + k % 8 / 2, row / 8 + k / 8 * 2, k) * number(column * 4 + k % 8 / 2, 4 + k / 8, k);
        *d[e] = sum;
    }
    warp.all.arrive_and_wait();
}

#define OF_A_WARP(T)                                                                                                        \
    static void __ldmatrix_m8n8_##T##_4x(uint32_t &p, uint32_t &q, uint32_t &r, uint32_t &s, const void *row) {              \
        ldmatrix<false>({&p, &q, &r, &s}, row);                                                                             \
    }                                                                                                                       \
    static void __ldmatrix_m8n8_##T##_4x_trans(uint32_t &p, uint32_t &q, uint32_t &r, uint32_t &s, const void *row) {        \
        ldmatrix<true>({&p, &q, &r, &s}, row);                                                                              \
    }                                                                                                                       \
    static void __mma_m16n8k16_##T##_##T##_float(uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,            \
                                                 uint32_t b1, float c0, float c1, float c2, float c3, float &d0, float &d1, \
                                                 float &d2, float &d3) {                                                    \
        mma<T>({a0, a1, a2, a3}, {b0, b1}, {c0, c1, c2, c3}, {&d0, &d1, &d2, &d3});                                         \
    }
OF_A_WARP(__nv_bfloat16)
OF_A_WARP(__half)

// Runs a kernel of three buffers and its scalars on all blocks of a grid: from standard input the grid, the units of a block, the
// number of scalars and the lengths of the buffers, then the scalars and the buffers; to standard output the last buffer.
template <typename Kernel> int run(Kernel kernel) {
    uint32_t head[8];
    if (fread(head, 4, 8, stdin) != 8) return 2;
    std::vector<uint32_t> info(head[4] + 64);
    std::vector<float> buffers[3];
    if (fread(info.data(), 4, head[4], stdin) != head[4]) return 2;
    for (int b = 0; b < 3; b++) {
        buffers[b].resize(head[5 + b]);
        if (fread(buffers[b].data(), 4, head[5 + b], stdin) != head[5 + b]) return 2;
    }
    uint32_t units = head[3];
    blockDim = {units, 1, 1};
    for (blockIdx.z = 0; blockIdx.z < head[2]; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < head[1]; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < head[0]; blockIdx.x++) {
                std::barrier<> all(units);
                together = &all;
                warps.clear();
                for (uint32_t warp = 0; warp < units / WARP; warp++) warps.push_back(std::make_unique<Warp>());
                std::vector<std::jthread> threads;
                for (uint32_t unit = 0; unit < units; unit++)
                    threads.emplace_back([&, unit] {
                        threadIdx = {unit, 0, 0};
                        kernel(buffers[0].data(), buffers[1].data(), buffers[2].data(), info.data());
                    });
            }
    fwrite(buffers[2].data(), 4, buffers[2].size(), stdout);
    return 0;
}
