# a

   # b
