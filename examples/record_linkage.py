"""Link records of the same people: scored pairs in, clusters out, beside connected components and Leiden."""

import igraph
import numpy as np

import ooc_pf as pf

FIELDS = np.array([2000, 500, 60, 12, 31])  # how many values each of five fields can have
ERROR = 0.15  # a field of a copy is wrong, at random
PRIOR = 10.4  # log2 of how many pairs of records there are for each that is of one person


def make_records(rng, people):
    """(person of each record, fields of each record): one to six copies of a person, with errors."""
    truth = np.repeat(np.arange(people), rng.integers(1, 7, people))
    fields = rng.integers(0, FIELDS, (people, len(FIELDS)))[truth]
    wrong = rng.random(fields.shape) < ERROR
    return truth, np.where(wrong, rng.integers(0, FIELDS, fields.shape), fields)


def score(fields):
    """Pairs that agree in one of the first three fields, with the match weight of Fellegi and Sunter (log2 odds)."""
    pairs = set()
    for column in fields.T[:3]:
        order = np.argsort(column, kind="stable")
        for block in np.split(order, np.flatnonzero(np.diff(column[order])) + 1):
            if len(block) <= 60:
                pairs |= {(a, b) for i, a in enumerate(block) for b in block[i + 1 :]}
    left, right = np.array(sorted((min(p), max(p)) for p in pairs)).T
    agree = fields[left] == fields[right]
    m, u = (1.0 - ERROR) ** 2, 1.0 / FIELDS
    return left, right, np.where(agree, np.log2(m / u), np.log2((1.0 - m) / (1.0 - u))).sum(axis=1) - PRIOR


def f1(cluster, truth):
    """Precision, recall and F1 of the pairs that are put together."""

    def together(labels):
        size = np.unique(labels, return_counts=True)[1]
        return (size * (size - 1) // 2).sum()

    both = together(truth * (cluster.max() + 1) + cluster)
    precision, recall = both / max(together(cluster), 1), both / together(truth)
    return precision, recall, 2.0 * precision * recall / (precision + recall)


def main(people: int = 1500) -> pf.LinkClusters:
    rng = np.random.default_rng(11)
    truth, fields = make_records(rng, people)
    left, right, weight = score(fields)
    found = pf.cluster_links((left, right, weight), records=np.arange(len(truth)))

    linked = weight > 0.0
    graph = igraph.Graph(n=len(truth), edges=np.column_stack((left, right))[linked].tolist())
    leiden = graph.community_leiden("modularity", weights=weight[linked].tolist(), n_iterations=10)
    rivals = {
        "connected components": np.array(graph.connected_components().membership),
        "Leiden (modularity)": np.array(leiden.membership),
        "cluster_links": found.cluster_id,
    }
    print(f"{len(truth)} records of {people} people, {len(weight)} scored pairs")
    print(f"{'':22}{'clusters':>9}{'precision':>11}{'recall':>8}{'F1':>7}")
    for name, cluster in rivals.items():
        precision, recall, both = f1(cluster, truth)
        print(f"{name:22}{len(np.unique(cluster)):9d}{precision:11.3f}{recall:8.3f}{both:7.3f}")
    print(found)
    return found


if __name__ == "__main__":
    main()
