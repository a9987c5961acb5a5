# A part of a file.
RUN a
ENV b=c
