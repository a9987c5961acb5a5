FROM scratch
COPY a <<b
b
