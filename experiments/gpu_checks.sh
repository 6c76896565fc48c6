#!/usr/bin/env bash
# What a GPU has to show: tests, speeds, memory and one trained encoder, on a bare machine
# without a network, in eleven minutes. It is run in the root of the checkout:
#
#     experiments/gpu_checks.sh OUT CORPUS [PART…]
#
#     1  tests of the GPU with CUDA graphs and without; two processes on it; NCCL  3 min
#     2  speed of training, 128 to 1,536 streams                                   2 min
#     3  Tables 4 and 5, memory first, at the paper's sizes, then small ones       2 min
#     4  an encoder of the paper's sizes, its matrices in int8: the first 45 MiB   4 min
#     5  the rest of that encoder, by a second call on the same machine
#
# By default parts 1 to 4. A part that fails, or is stopped at its limit, does not stop
# the next. OUT gets a log a part, a line a part in summary.txt, and the encoder in
# pieces: `cat OUT*/encoder.tar.* | tar x` makes its metrics and the directory `model`,
# into which models/english/joined.safetensors is to be copied.
#
# CORPUS is an archive without vector tables; nine million words take 11 MB:
#
#     python -m data_scripts.build_corpus --leave-out dev.txt -- NAME=TEXT… runs/corpus
#     tar c -C runs corpus | xz --lzma2=preset=6,lc=0,lp=2,pb=2,dict=64MiB >CORPUS
#
# The machine has Python and PyTorch; neither fastText nor a compiler is needed. What it
# lacks of NEEDED is taken from the folder WHEELS (default: wheels), made with
# `pip download --no-deps --only-binary :all: --python-version 3.12 -c constraints.txt`.
# DEVICE=cpu TINY=1 tries all of this where there is no GPU, and SLOWER=5 gives five times
# as long. The folder WORK (default: runs/gpu_checks) has to outlive a call for part 5.
set -u
OUT=$(realpath -m "$1")
CORPUS=$(realpath -m "$2")
shift 2
WORK=$(realpath -m "${WORK:-runs/gpu_checks}")
export OUT CORPUS WORK PYTHON=${PYTHON:-python3} DEVICE=${DEVICE:-cuda} TINY=${TINY:-}
export PYTHONPATH=$WORK/site:$WORK:$PWD PYTHONUNBUFFERED=1
NEEDED="filelock h5py lazy_loader msgspec numpy safetensors tokenizers tqdm xxhash
    iniconfig packaging pluggy pygments pytest pytest_timeout"
SECONDS_OF_PART=(0 180 120 120 240 60)

install_missing() {
    local name missing=()
    for name in $NEEDED; do
        $PYTHON -c "import $name" 2>/dev/null || missing+=("$name")
    done
    echo "missing packages: ${missing[*]:-none}"
    [ ${#missing[@]} -eq 0 ] || $PYTHON -m pip install --quiet --no-index --no-deps \
        --find-links "${WHEELS:-wheels}" --target "$WORK/site" "${missing[@]}"
}

gpu_tests() { # OPTION…, of pytest
    $PYTHON -m pytest -v -rs -p no:cacheprovider tests/pretrain/test_gpu.py "$@" \
        $($PYTHON -c "import xdist; print('-n 4')" 2>/dev/null)
}

# One of several processes that train on one GPU, and send gradients by a backend.
train_sharing() { # RUN BACKEND RANK PROCESSES
    RANK=$3 WORLD_SIZE=$4 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29417 \
        $PYTHON -m sharing "$2" pretrain/configs/fast.toml "$WORK/$1" \
        --set data.corpus="$WORK/made_up" --set train.device="$DEVICE" \
        --set train.precision=float32 --set train.streams=8 --set train.updates=20 \
        --set log.every_updates=20 --set evaluation.words=1000
}

part_1() {
    local status=0 other nccl=nccl
    [ "$DEVICE" = cuda ] || nccl=gloo
    # Test data is small: more threads would wait for each other.
    export OMP_NUM_THREADS=1
    echo 'import pretrain.step; pretrain.step.graphed = lambda encoder, *_: encoder' \
        >"$WORK/without_graphs.py"
    cat >"$WORK/sharing.py" <<'SHARING'
import sys
import torch.distributed as dist
from elmoc.process import torchrun_numbers
from pretrain.__main__ import main
from pretrain.distributed.processes import DirectionGroup, Processes

backend, *arguments = sys.argv[1:]
if backend != "none":
    Processes.new_groups = lambda self, directions, device: {
        each: DirectionGroup(dist.new_group(backend=backend)) for each in directions
    }
    # One process alone is not connected by itself.
    if torchrun_numbers()["world_size"] == 1:
        dist.init_process_group(backend)
sys.exit(main(arguments))
SHARING
    gpu_tests >"$WORK/graphs.log" 2>&1 &
    other=$!
    gpu_tests -p without_graphs >"$WORK/plain.log" 2>&1 || status=1
    wait $other || status=1
    tail -n +1 "$WORK"/{graphs,plain}.log
    rm -rf "$WORK"/{made_up,alone,two,one_rank}
    $PYTHON -c '
import shutil, sys
from experiments.synthetic import made_up_corpus
with made_up_corpus(5_000, 100_000, tables={"input", "target"}) as path:
    shutil.copytree(path, sys.argv[1])' "$WORK/made_up" || status=1
    train_sharing alone none 0 1 || status=1
    train_sharing two gloo 0 2 &
    other=$!
    train_sharing two gloo 1 2 || status=1
    wait $other || status=1
    train_sharing one_rank $nccl 0 1 || status=1
    $PYTHON -c '
import sys
from pathlib import Path
from pretrain.run.directory import read_metrics
losses = [read_metrics(Path(run), "train")[-1]["loss"] for run in sys.argv[1:]]
print("last losses: alone, of two processes, by one rank:", *losses)
sys.exit(max(losses) - min(losses) > 1e-3 * losses[0])' \
        "$WORK"/{alone,two,one_rank} || status=1
    return $status
}

part_2() {
    local config speed="$PYTHON -m experiments.training_speed" configs=pretrain/configs
    if [ "$TINY" ]; then
        exec $speed $configs/fast.toml 2 4 plain fused-float32
    fi
    for config in $configs/{elmo_c,small}.toml; do
        $speed $config 128 256 512 768 1024 1536 fused-bf16
    done
    $speed $configs/elmo_c.toml 128 768 fused-float32
}

part_3() {
    [ "$TINY" ] || exec $PYTHON -m experiments.paper_speed S2,S1,5 paper,small
    $PYTHON -c '
from experiments import paper_speed as it
from pretrain.distributed.processes import Processes
it.STREAMS = it.UPDATES = 1
it.GIGABYTES = 0.1
it.WORDS = 60_000
rows = it.output_layers
it.output_layers = lambda sizes: [
    row._replace(types=min(row.types, it.WORDS)) for row in rows(sizes)
]
it.main(Processes())' S2,S1,5 small
}

make_tables() {
    local joined=models/english/joined.safetensors words=$WORK/fasttext.safetensors
    [ ! -e "$WORK/corpus/vectors/input.json" ] || return 0
    rm -rf "$WORK/corpus"
    mkdir "$WORK/corpus"
    tar xf "$CORPUS" -C "$WORK/corpus" --strip-components 1
    # Targets are of fastText alone, the first of the joined vectors.
    $PYTHON -c '
import sys
from elmoc.word_vectors.opening import open_word_vectors
open_word_vectors(sys.argv[1]).parts[0].write(sys.argv[2])' $joined "$words"
    $PYTHON -m data_scripts.build_vectors "$WORK/corpus" "$words" \
        --name target --post-process whiten
    $PYTHON -m data_scripts.build_vectors "$WORK/corpus" $joined --name input
}

part_4() {
    local time piece=15m
    local sizes="encoder.projection_size=512 encoder.cell_size=4096 train.streams=768"
    make_tables
    # What is left, but for 45 seconds in which the encoder is saved and packed.
    time=$((LIMIT - SECONDS - 45))
    if [ "$TINY" ]; then
        piece=20k
        sizes="encoder.projection_size=16 encoder.cell_size=32 train.streams=8"
        time=20
    fi
    rm -rf "$WORK"/{run,model,encoder.tar.*}
    # Text that is read ten times asks for more dropout than the paper's.
    $PYTHON -m pretrain pretrain/configs/gpu.toml "$WORK/run" --max-time ${time}s \
        --set data.corpus="$WORK/corpus" --set train.device="$DEVICE" \
        --set encoder.dropout=0.2 --set schedule.base=1e-3 \
        --set schedule.streams_per_worker=768 $(printf -- "--set %s " $sizes)
    # `elmoc pack` would pack the word vectors, which are packed, once more.
    $PYTHON -c '
import sys
from elmoc import ElmoC
from elmoc.packing import packed_model
from elmoc.weights import contiguous, packed_weights
elmo = ElmoC.from_pretrained(sys.argv[1], precision="float32")
weights = packed_weights(contiguous(elmo.encoder.weights()), "int8")
packed_model(elmo, weights, elmo.word_vectors).save_pretrained(sys.argv[2])' \
        "$WORK"/{run,model}
    tar c -C "$WORK" --exclude joined.safetensors model run/metrics.jsonl |
        split -b $piece - "$WORK/encoder.tar."
    ls -l "$WORK"/encoder.tar.*
    cp "$WORK"/encoder.tar.a[abc] "$OUT"
}

part_5() {
    cp "$WORK"/encoder.tar.a[d-z] "$OUT"
}

run_part() { # PART
    local started=$SECONDS status
    export LIMIT=$((SECONDS_OF_PART[$1] * ${SLOWER:-1}))
    timeout -k 10 $LIMIT bash -euo pipefail -c "part_$1" >"$OUT/part_$1.log" 2>&1
    status=$?
    echo "part $1: exit status $status, $((SECONDS - started)) s" |
        tee -a "$OUT/summary.txt"
    return $status
}

export -f gpu_tests train_sharing make_tables part_1 part_2 part_3 part_4 part_5
mkdir -p "$OUT" "$WORK"
{
    nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader
    $PYTHON -c "import sys, torch; print('Python', sys.version, 'PyTorch', torch.__version__)"
    install_missing
} 2>&1 | tee "$OUT/summary.txt"
failed=0
[ $# -gt 0 ] || set -- 1 2 3 4
for part; do
    run_part "$part" || failed=1
done
exit $failed
