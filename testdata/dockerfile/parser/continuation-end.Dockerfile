FROM scratch
RUN a \

# comment
