"""Which class an aten operator belongs to."""

from __future__ import annotations

import torch

from hkbench.records import OperatorClass

_BY_CLASS = {
    OperatorClass.MATMUL: "mm bmm addmm baddbmm addbmm mv addmv dot vdot _scaled_mm _int_mm",
    OperatorClass.NORMALISATION: "native_layer_norm native_group_norm native_batch_norm cudnn_batch_norm "
    "miopen_batch_norm _batch_norm_with_update _native_batch_norm_legit _native_batch_norm_legit_no_training "
    "_fused_rms_norm _softmax _log_softmax _safe_softmax",
    OperatorClass.REDUCTION: "sum nansum mean prod max min amax amin aminmax argmax argmin var std var_mean std_mean "
    "norm linalg_vector_norm logsumexp any all count_nonzero trace median nanmedian mode nll_loss_forward "
    "nll_loss2d_forward _cdist_forward",
    OperatorClass.SCAN: "cumsum cumprod logcumsumexp cummax cummin _cummax_helper _cummin_helper",
    OperatorClass.SORT: "topk sort kthvalue _unique2 unique_dim unique_consecutive bincount histc",
    OperatorClass.GATHER: "embedding _embedding_bag _embedding_bag_forward_only index index_select index_add "
    "index_copy index_fill index_put _unsafe_index gather take scatter scatter_add scatter_reduce masked_select "
    "masked_scatter nonzero searchsorted bucketize grid_sampler_2d grid_sampler_3d",
    OperatorClass.COPY: "clone _to_copy copy tril triu cat stack constant_pad_nd flip roll repeat repeat_interleave "
    "im2col pixel_shuffle pixel_unshuffle channel_shuffle diag_embed _reshape_copy slice_scatter select_scatter "
    "reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d",
    OperatorClass.ELEMENTWISE: "hardswish bernoulli native_dropout glu _prelu_kernel log_sigmoid_forward",
}
_NAMES = {name: one for one, names in _BY_CLASS.items() for name in names.split()}
_FILLS = (
    "empty", "zeros", "ones", "full", "arange", "scalar_tensor", "rand", "normal", "eye", "linspace", "new_",
    "fill", "zero", "uniform", "lift", "_local_scalar_dense", "resize", "set", "is_same_size", "equal",
)  # fmt: skip
#: Views that do not say so of themselves.
_VIEWS = frozenset({"_unsafe_view", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk"})
_LOSSES = frozenset({"smooth_l1_loss", "huber_loss", "mse_loss", "soft_margin_loss", "binary_cross_entropy"})


def class_of(operator: torch._ops.OpOverload[..., object], given: int, made: int) -> OperatorClass | None:
    """Return the class of one call of an `OpOverload`; `None` for views and fills.

    `given`, `made`: elements in and out.
    """
    name = operator.overloadpacket.__name__.removesuffix("_")
    if name in _NAMES:
        return _NAMES[name]
    if name in _VIEWS or _is_view(operator) or name.startswith(_FILLS):
        return None
    if "backward" in name:
        return OperatorClass.OTHER
    if "convolution" in name or "conv2d" in name or "conv3d" in name:
        return OperatorClass.CONV
    if "scaled_dot_product" in name:
        return OperatorClass.ATTENTION
    if "pool" in name:
        return OperatorClass.POOL
    if name in _LOSSES:
        return OperatorClass.REDUCTION if made < given else OperatorClass.ELEMENTWISE
    return OperatorClass.ELEMENTWISE if torch.Tag.pointwise in operator.tags else OperatorClass.OTHER


def _is_view(operator: torch._ops.OpOverload[..., object]) -> bool:
    """Return whether a result lies in the memory of an argument that is not written."""
    aliases = [argument.alias_info for argument in operator._schema.arguments if argument.alias_info is not None]
    return bool(aliases) and not any(alias.is_write for alias in aliases)
