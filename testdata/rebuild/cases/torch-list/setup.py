"""Compiles axpy.cu for what TORCH_CUDA_ARCH_LIST says, as PyTorch's extension builder reads it."""
import os
import subprocess
import sys

options = []
for one in os.environ["TORCH_CUDA_ARCH_LIST"].replace(";", " ").split():
    number, ptx = one.removesuffix("+PTX").replace(".", ""), one.endswith("+PTX")
    options.append(f"-gencode=arch=compute_{number},code=sm_{number}")
    if ptx:
        options.append(f"-gencode=arch=compute_{number},code=compute_{number}")
out = os.path.join(sys.argv[sys.argv.index("--install-lib") + 1], "axpy")
os.makedirs(out, exist_ok=True)
subprocess.run(["nvcc", "-shared", "-Xcompiler", "-fPIC", *options, "-o", f"{out}/libaxpy.so", "axpy.cu"], check=True)
