#!/bin/sh
# Makes the libraries of this directory again: ./make.sh (gcc and binutils, patchelf; LLD names an ld.lld, by default
# the one that Rust brings).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
lld=${LLD:-$(rustc --print sysroot)/lib/rustlib/x86_64-unknown-linux-gnu/bin/gcc-ld/ld.lld}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > cudart.c <<'C'
int cudaMalloc(void) { return 0; }
int cudaFree(void) { return 0; }
int cudaFreeOld(void) { return 1; }
__asm__(".symver cudaFreeOld, cudaFree@libcudart.so.11");
int helper(void) { return 2; }
__attribute__((visibility("hidden"))) int inner(void) { return 3; }
C
cat > cudart.map <<'C'
libcudart.so.11 { };
libcudart.so.12 { global: cudaMalloc; cudaFree; local: helper; } libcudart.so.11;
C
cat > cuda.c <<'C'
int cuInit(void) { return 0; }
C
cat > libc.c <<'C'
int open(void) { return 0; }
int close(void) { return 0; }
C
cat > libc.map <<'C'
GLIBC_2.2.5 { global: close; };
GLIBC_2.34 { global: open; } GLIBC_2.2.5;
C
cat > user.c <<'C'
int cudaMalloc(void), cudaFree(void), cuInit(void), open(void), close(void), cuda_helper(void), other(void);
__attribute__((weak)) int nvmlInit_v2(void), cudnnCreate(void);
const char *const opens[] = {"libcudnn.so.9", "libnvidia-ml.so.1", "libcudart.so.12", "libcublas.so.%d", "libcurl.so.4",
                             "libcudnn_ops.so.9 was not found", "/usr/lib/libcufft.so.11", "libcudnn.so.9"};
int run(void) {
    return cudaMalloc() + cudaFree() + cuInit() + open() + close() + cuda_helper() + other() +
           (nvmlInit_v2 ? nvmlInit_v2() : 0) + (cudnnCreate ? cudnnCreate() : 0);
}
C
flags="-shared -fPIC -Os -nostdlib -fno-asynchronous-unwind-tables -fno-ident -s -Wl,--build-id=none -Wl,-z,noseparate-code"
flags="$flags -Wl,-z,max-page-size=4096"
gcc $flags cudart.c -Wl,--version-script=cudart.map -Wl,-soname,libcudart.so.12 -o libcudart.so.12
gcc $flags cuda.c -Wl,-soname,libcuda.so.1 -o libcuda.so.1
gcc $flags libc.c -Wl,--version-script=libc.map -Wl,-soname,libc.so.6 -o libc.so.6
needs="libcudart.so.12 libcuda.so.1 libc.so.6"
gcc $flags user.c $needs -Wl,-soname,libuser.so -Wl,-z,nodefaultlib -Wl,-rpath,'$ORIGIN/../lib' -o user.so
gcc $flags -Wl,--hash-style=sysv user.c $needs -Wl,-soname,libuser.so -o user-sysv-hash.so
gcc $flags -B"$(dirname "$lld")" -fuse-ld=lld user.c $needs -Wl,-soname,libuser.so -o user-lld.so
gcc $flags -Wl,-z,separate-code user.c $needs -Wl,-soname,libuser.so -o user-separate.so
strip --strip-section-headers user-separate.so 2>/dev/null || python3 - <<'PY'
# Without section headers, as llvm-strip --strip-sections leaves files.
data = bytearray(open("user-separate.so", "rb").read())
data[40:48] = bytes(8)
data[60:64] = bytes(4)
open("user-separate.so", "wb").write(data)
PY
# As auditwheel does: the bundled library gets a hash, its users' names of it follow.
cp user.so user-patchelf.so
patchelf --set-rpath '$ORIGIN/../../nvidia/cuda_runtime/lib:$ORIGIN/../user.libs' \
    --replace-needed libcudart.so.12 libcudart-9335f6a2.so.12 user-patchelf.so
cp libcudart.so.12 libcudart-9335f6a2.so.12
patchelf --set-soname libcudart-9335f6a2.so.12 libcudart-9335f6a2.so.12
# Program headers at the end, as patchelf up to 0.9 leaves them.
python3 - <<'PY'
import struct
data = bytearray(open("user.so", "rb").read())
at, = struct.unpack_from("<Q", data, 32)
size, count = struct.unpack_from("<HH", data, 54)
data += bytes(-len(data) % 8)
struct.pack_into("<Q", data, 32, len(data))
data += data[at:at + size * count]
data[at:at + size * count] = bytes(size * count)
open("user-moved.so", "wb").write(data)
PY
rm -f "$here"/*.so "$here"/*.so.*
cp user.so user-sysv-hash.so user-lld.so user-separate.so user-patchelf.so user-moved.so libcudart.so.12 \
    libcudart-9335f6a2.so.12 "$here"
chmod 644 "$here"/*.so "$here"/*.so.*
