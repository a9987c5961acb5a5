# Syntax = docker/dockerfile:1.7
#check=skip=all;error=true
	# ESCAPE=\
# a comment ends them
# syntax=ignored
# escape=x
FROM scratch
# escape=`
RUN a \
    b
