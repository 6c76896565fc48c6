"""Which matrix products does one update of one direction consist of?

They set the bound that the speed of an update is compared with: each timed alone, times how often it is made.
"""

from elmoc.encoders.lstm import EncoderConfig
from pretrain.speed.products import TimedProduct, fused_linear, linear


def product_parameters(config: EncoderConfig, target_size: int) -> int:
    """The entries of one direction's weight matrices, head included."""
    projection, cell = config.projection_size, config.cell_size
    layer = 4 * cell * projection + 4 * cell * projection + projection * cell  # W_x, W_h, W_p
    return config.word_vector_size * projection + config.layers * layer + projection * target_size


def flops_per_word(config: EncoderConfig, target_size: int, directions: int) -> int:
    """Floating-point operations of the matrix products that a word needs, read by so many directions.

    A multiplication and an addition for each entry of a weight matrix, three times: for the output, for the gradient of
    the input, and for the gradient of the weight.
    """
    return directions * 3 * 2 * product_parameters(config, target_size)


def plain_products(config: EncoderConfig, target_size: int, streams: int, window: int) -> list[TimedProduct]:
    """Those of `plain_recurrence`: the input product of the whole window at once, all others step by step."""
    return step_by_step(config, target_size, streams, window, inputs_at_once=True)


def allennlp_products(config: EncoderConfig, target_size: int, streams: int, window: int) -> list[TimedProduct]:
    """Those of AllenNLP's loop: all step by step."""
    return step_by_step(config, target_size, streams, window, inputs_at_once=False)


def fused_products(config: EncoderConfig, target_size: int, streams: int, window: int) -> list[TimedProduct]:
    """Those of `FusedRecurrence`: input and state together, and the gradients of weights over all steps at once."""
    projection, cell, words = config.projection_size, config.cell_size, streams * window
    return [
        *linear("word vectors", words, config.word_vector_size, projection, 1, input_gradients=0),
        *fused_linear("input and state to gates", streams, window, 2 * projection, 4 * cell, config.layers),
        *fused_linear("cell to state", streams, window, cell, projection, config.layers),
        *linear("head", words, projection, target_size, 1),
    ]


def step_by_step(
    config: EncoderConfig, target_size: int, streams: int, window: int, *, inputs_at_once: bool
) -> list[TimedProduct]:
    """The products of a recurrence under autograd, where weights get their gradients step by step."""
    projection, cell, layers = config.projection_size, config.cell_size, config.layers
    words, steps = streams * window, layers * window
    rows, count = (words, layers) if inputs_at_once else (streams, steps)
    return [
        # the word vectors are frozen, and a window's first state is cut off from the graph: no gradients go there
        *linear("word vectors", words, config.word_vector_size, projection, 1, input_gradients=0),
        *linear("input to gates", rows, projection, 4 * cell, count),
        *linear("state to gates", streams, projection, 4 * cell, steps, input_gradients=steps - layers),
        *linear("cell to state", streams, cell, projection, steps),
        *linear("head", words, projection, target_size, 1),
    ]
