FROM scratch
RUN a