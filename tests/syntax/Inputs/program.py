#!/usr/bin/env python3
"""A program around kernels; def not_a_function(): pass"""
import torch; import tilelang
from tilelang import (
    language as T,
)

BLOCK = 128
lo, hi = 0, (1,
             2)
count: int = 3
size: int
total += 1
table["a"] = 1


class Config(Base):
    text = """
def not_a_function_either(): pass
"""

    def method(self): return (


@tilelang.jit(
    out_idx=[-1],
)
# a comment between
@cached
def matmul(M, N, K):

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16")):
        with T.Kernel(1) as bx:
            pass
# a comment at the margin does not end it
    return main


def broken(x y):
    pass


def after(x):
    return x


async def not_for_us():
    pass

if __name__ == "__main__":
    def nested(): pass
    main(
