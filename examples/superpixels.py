"""Segment a picture: superpixels that look alike belong together, and no number of segments has to be given.

Needs scikit-image and networkx. Draws the picture itself, and saves it beside its segments.
"""

import tempfile
from pathlib import Path

import numpy as np
from skimage import graph, io, segmentation

import ooc_pf as pf

ALIKE = 0.08  # difference of two mean colours that speaks neither for nor against one segment


def draw_picture() -> np.ndarray:
    """A sun over two hills, with noise."""
    y, x = np.mgrid[0:120, 0:180] / 120.0
    picture = [0.45, 0.65, 0.95] + y[..., None] * [0.4, 0.25, 0.0]
    picture[(x - 1.1) ** 2 + (y - 0.3) ** 2 < 0.03] = [0.98, 0.85, 0.3]
    picture[y > 0.65 + 0.12 * np.sin(5.0 * x)] = [0.35, 0.55, 0.3]
    picture[y > 0.8 + 0.1 * np.cos(4.0 * x)] = [0.3, 0.45, 0.28]
    return np.clip(picture + np.random.default_rng(0).normal(0.0, 0.1, picture.shape), 0.0, 1.0)


def main() -> pf.Result:
    picture = draw_picture()
    pixels = segmentation.slic(picture, n_segments=250, compactness=20.0, sigma=1.0, start_label=0, channel_axis=-1)
    regions = graph.rag_mean_color(picture, pixels)  # a networkx graph of neighbours, the weight their difference
    for a, b in regions.edges:
        regions[a][b]["alike"] = ALIKE - regions[a][b]["weight"]

    result = pf.correlation_clustering(regions, weight="alike", tol=1e-4)
    segment = np.vectorize(result.labels.get)(pixels)
    boundaries = segmentation.mark_boundaries(picture, segment, color=(1.0, 0.0, 0.0))
    saved = Path(tempfile.gettempdir()) / "superpixels.png"
    io.imsave(saved, (255 * np.hstack((picture, boundaries))).astype(np.uint8), check_contrast=False)
    print(f"{len(regions)} superpixels, {len(np.unique(segment))} segments of cost {result.cost:.4f}")
    print(f"proven: no segmentation of these superpixels costs less than {result.lp_lower_bound:.4f}")
    print(f"picture: {saved}")
    return result


if __name__ == "__main__":
    main()
