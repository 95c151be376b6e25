import cupy
from cupyx.scipy import ndimage

ndimage.grey_dilation(cupy.zeros((8, 8), TYPE), size=3, mode=MODE)  # noqa: F821
