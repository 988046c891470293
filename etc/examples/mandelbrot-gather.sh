#!/bin/sh
#SBATCH --job-name=gather
#SBATCH --nodes=3
#SBATCH --ntasks=6
#SBATCH --ntasks-per-node=2
#SBATCH --mem-per-cpu=100M
#SBATCH --time=10
#SBATCH --output=mandelbrot/gather-%j.out
#
# Puts the bands of mandelbrot.sh together, and measures the set's area with a parallel step: six tasks on three nodes.
#
set -eu

cat mandelbrot/band-*.txt
echo

echo "Job $SLURM_JOB_ID runs on $SLURM_JOB_NODELIST with $SLURM_NTASKS tasks:"
srun --label sh -c 'echo "on $SLURMD_NODENAME, local task $SLURM_LOCALID"' | sort -n
echo

# Each task counts the points of its own rows of a grid that belong to the set.
count='
BEGIN {
    rank = ENVIRON["SLURM_PROCID"]; tasks = ENVIRON["SLURM_NTASKS"]
    n = 240; limit = 250
    for (row = rank; row < n; row += tasks)
        for (column = 0; column < n; column++) {
            cr = -2 + 2.5 * (column + 0.5) / n
            ci = 1.25 * (row + 0.5) / n
            x = y = k = 0
            while (x * x + y * y < 4 && k < limit) { t = x * x - y * y + cr; y = 2 * x * y + ci; x = t; k++ }
            inside += k == limit
            all++
        }
    print inside, all
}'
srun awk "$count" | awk '
    { inside += $1; all += $2; tasks++ }
    END { printf "%d tasks found %d of %d points inside: area %.3f (the true one is 1.5066)\n", tasks, inside, all, 2 * 2.5 * 1.25 * inside / all }'
