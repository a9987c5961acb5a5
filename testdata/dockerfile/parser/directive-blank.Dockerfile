
# escape=`
FROM scratch
RUN a `
RUN b
