FROM scratch
ENV A=b\\\
ENV A=b\\\\
