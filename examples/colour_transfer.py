"""The colours of one picture for another: transport between two clouds of colours, with a proof of how good it is.

    python examples/colour_transfer.py [PICTURE PALETTE]

Without names it draws two pictures itself. Reading pictures needs matplotlib; the answer is saved beside the first.
"""

import struct
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

import ooc_pf as pf

SAMPLES = 1500  # colours of each picture that are moved; all others go with their neighbours


def draw_pictures() -> tuple[np.ndarray, np.ndarray]:
    """An evening by the sea, and a meadow at noon."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:1:120j, 0:1:160j]
    sun = np.exp(-60.0 * ((x - 0.6) ** 2 + (y - 0.45) ** 2))
    evening = np.stack(
        [0.9 - 0.3 * y + 0.3 * sun, 0.25 + 0.35 * y * (y < 0.55) + 0.5 * sun, 0.35 + 0.3 * (y > 0.55)], 2
    )
    clouds = 0.3 * np.exp(-40.0 * (y - 0.15 - 0.05 * np.sin(9.0 * x)) ** 2)
    sky = np.stack([0.35 + 0.3 * y + clouds, 0.6 + 0.2 * y + clouds, 0.95 - 0.1 * y], 2)
    grass = np.stack([0.25 + 0.2 * y, 0.45 + 0.3 * np.sin(40.0 * x * y) ** 2, 0.15 + 0.1 * x], 2)
    meadow = np.where((y < 0.5 + 0.05 * np.sin(6.0 * x))[..., None], sky, grass)
    return tuple(np.clip(each + 0.02 * rng.normal(size=each.shape), 0.0, 1.0) for each in (evening, meadow))


def write_picture(path: Path, picture: np.ndarray) -> None:
    """A PNG of [rows, columns, 3] numbers from 0 to 1."""
    pixels = np.round(255.0 * np.clip(picture, 0.0, 1.0)).astype(np.uint8)
    rows, columns, _ = pixels.shape
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], axis=1)
    parts = {b"IHDR": struct.pack(">2I5B", columns, rows, 8, 2, 0, 0, 0), b"IDAT": zlib.compress(lines.tobytes())}
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for name, data in (*parts.items(), (b"IEND", b"")):
            file.write(struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)))


def read_picture(path: Path) -> np.ndarray:
    from matplotlib.image import imread

    found = np.asarray(imread(path), np.float64)
    found = found / 255.0 if found.max() > 1.0 else found
    return found[..., :3] if found.ndim == 3 else np.repeat(found[..., None], 3, axis=2)


def transfer(picture: np.ndarray, palette: np.ndarray) -> tuple[np.ndarray, pf.Result]:
    """The picture with the colours of the palette: each colour goes to the mean of where its mass goes."""
    rng = np.random.default_rng(0)
    colours = picture.reshape(-1, 3)
    x, y = (all_of[rng.permutation(len(all_of))[:SAMPLES]] for all_of in (colours, palette.reshape(-1, 3)))
    a, b = np.full(len(x), 1.0 / len(x)), np.full(len(y), 1.0 / len(y))
    result = pf.quadratic_transport(a, b, (x, y), marginals="exact", reg=5.0)
    moved = (result.plan @ y) / a[:, None] - x
    near = cKDTree(x).query(colours, k=8)[1]
    return (colours + moved[near].mean(axis=1)).reshape(picture.shape), result


def main(names: tuple[str, ...] = ()) -> pf.Result:
    if names:
        paths = tuple(map(Path, names))
        picture, palette = map(read_picture, paths)
    else:
        paths = tuple(Path(tempfile.gettempdir()) / name for name in ("evening.png", "meadow.png"))
        picture, palette = draw_pictures()
        write_picture(paths[0], picture)
        write_picture(paths[1], palette)
    answer, result = transfer(picture, palette)
    saved = paths[0].with_name(f"{paths[0].stem}-in-the-colours-of-{paths[1].stem}.png")
    write_picture(saved, answer)
    errors = f"marginals right to {max(result.row_error, result.column_error):.0e} of the mass"
    print(f"{result.status}: cost {result.objective:.6f}, proven to be at least {result.lower_bound:.6f}; {errors}")
    print(f"{result.plan.nnz} of {np.prod(result.plan.shape)} pairs of colours carry mass")
    print(f"pictures: {paths[0]}, {paths[1]}, {saved}")
    return result


if __name__ == "__main__":
    main(tuple(sys.argv[1:3]))
