"""Makes the small ONNX and Paddle models beside it. Needs onnx and paddlepaddle, in an environment of its own:

    python make.py onnx
    python make.py paddle3
    FLAGS_enable_pir_api=0 python make.py paddle2

Made with onnx 1.23.2 and paddlepaddle 3.3.1 on Python 3.11.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent


def onnx_models() -> None:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def model():
        ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"])
        out = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", 8])
        words = numpy_helper.from_array(np.arange(96, dtype=np.float32).reshape(12, 8), "word_embeddings.weight")
        half = numpy_helper.from_array(np.ones(8, dtype=np.float16), "half")
        nodes = [
            helper.make_node("Gather", ["word_embeddings.weight", "input_ids"], ["e"]),
            helper.make_node("Identity", ["e"], ["last_hidden_state"]),
        ]
        graph = helper.make_graph(nodes, "tiny", [ids], [out], [words, half])
        return helper.make_model(graph, producer_name="sampan-fixture", opset_imports=[helper.make_opsetid("", 17)])

    onnx.save(model(), HERE / "tiny.onnx")
    outside = model()
    outside.metadata_props.add(key="license", value="apache-2.0")
    onnx.save(
        outside, HERE / "tiny_ext.onnx", save_as_external_data=True, location="tiny_ext.onnx_data", size_threshold=0
    )


def paddle_model(folder: str) -> None:
    import paddle

    class Tiny(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.words, self.out = paddle.nn.Embedding(12, 8), paddle.nn.Linear(8, 4)

        def forward(self, input_ids):
            return self.out(self.words(input_ids))

    paddle.seed(0)
    model = Tiny()
    model.eval()
    spec = [paddle.static.InputSpec([None, None], "int64", "input_ids")]
    paddle.jit.save(model, str(HERE / folder / "inference"), input_spec=spec)
    written = HERE / folder / "inference.pdmodel"
    if written.is_file():  # the older form keeps the paths of the machine it was made on
        from paddle.base.proto import framework_pb2

        program = framework_pb2.ProgramDesc.FromString(written.read_bytes())
        for operator in program.blocks[0].ops:
            kept = [each for each in operator.attrs if each.name != "op_callstack"]
            del operator.attrs[:]
            operator.attrs.extend(kept)
        written.write_bytes(program.SerializeToString())
        (HERE / folder / "inference.pdiparams.info").unlink(missing_ok=True)


if __name__ == "__main__":
    onnx_models() if sys.argv[1] == "onnx" else paddle_model(sys.argv[1])
