#!/bin/sh
#SBATCH --job-name=mandelbrot
#SBATCH --array=0-17
#SBATCH --cpus-per-task=1
#SBATCH --mem=100M
#SBATCH --time=10
#SBATCH --output=mandelbrot/band-%a.log
#
# A picture of the Mandelbrot set, one band for each task of a job array. Needs nothing but awk.
#
#   mkdir -p mandelbrot
#   job=$(sbatch --parsable mandelbrot.sh)
#   sbatch --dependency=afterok:$job mandelbrot-gather.sh
#
set -eu

band=$(printf '%02d' "$SLURM_ARRAY_TASK_ID")
echo "band $band of $SLURM_ARRAY_TASK_COUNT on $SLURMD_NODENAME"

awk -v band="$SLURM_ARRAY_TASK_ID" -v bands="$SLURM_ARRAY_TASK_COUNT" '
BEGIN {
    width = 78; rows = 2; samples = 6; limit = 400
    height = bands * rows
    shades = " .,:;-~=+*xoX%#@"
    for (row = band * rows; row < (band + 1) * rows; row++) {
        line = ""
        for (column = 0; column < width; column++) {
            # Several samples in each character, to see the thin threads.
            light = 0
            for (i = 0; i < samples * samples; i++) {
                cr = -2.2 + 3.2 * (column + (i % samples + 0.5) / samples) / width
                ci = 1.2 - 2.4 * (row + (int(i / samples) + 0.5) / samples) / height
                x = y = n = 0
                while (x * x + y * y < 4 && n < limit) {
                    t = x * x - y * y + cr
                    y = 2 * x * y + ci
                    x = t
                    n++
                }
                light += log(n + 1) / log(limit + 1)
            }
            shade = int(light / (samples * samples) * length(shades)) + 1
            if (shade > length(shades)) shade = length(shades)
            line = line substr(shades, shade, 1)
        }
        print line
    }
}' > "mandelbrot/band-$band.part"

# Whole or absent, should the task be requeued while it writes.
mv "mandelbrot/band-$band.part" "mandelbrot/band-$band.txt"
