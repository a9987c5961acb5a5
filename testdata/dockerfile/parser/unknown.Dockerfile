FROM scratch
RUN a &&
    b
RUNN c
}
RUN after
