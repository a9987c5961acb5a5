FROM scratch
CMD ["a", 1]
CMD ["b"]
