"""Page: the uses of a word as one web page, where each point shows its sentence, and
uses that lie together have one colour.
"""

import html
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

# These are of an extra.
from plotly.colors import qualitative
from plotly.graph_objects import Figure, Layout
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from elmoc.errors import shortened
from elmoc.files.writing import atomic_path
from elmoc.looking.picture import use_points
from elmoc.looking.uses import Use
from elmoc.model import ElmoC

# Principal components in which clusters are looked for; the first two are drawn. In
# all of them, distances are much alike.
COMPONENTS = 10
# More colours are hard to tell apart.
MOST_CLUSTERS = 6
# Words on each side of a use that may name its cluster, and how many do.
NEAR_WORDS = 4
NAMING_WORDS = 4
# A word of a larger share of the sentences is a function word, or the word itself.
COMMON_SHARE = 0.1
# Characters of a line, and of a word at most, in the box that shows a sentence.
LINE_CHARACTERS = 70

_LAYOUT = Layout(
    template="none",
    title={"x": 0.02, "y": 0.97, "yanchor": "top"},
    margin={"l": 20, "r": 20, "t": 100, "b": 20},
    dragmode="pan",
    # What is behind it is the browser's, light or dark.
    paper_bgcolor="rgba(0, 0, 0, 0)",
    plot_bgcolor="rgba(0, 0, 0, 0)",
    xaxis={"visible": False},
    yaxis={"visible": False},
    showlegend=True,
    legend={"title": {"text": "commonest neighbours (uses)"}},
    hoverlabel={"bgcolor": "white", "font": {"color": "#222"}, "align": "left"},
)
_THEME = """
document.documentElement.style.colorScheme = "light dark";
const dark = matchMedia("(prefers-color-scheme: dark)");
function paint() {
  Plotly.relayout("{plot_id}", {"font.color": dark.matches ? "#ddd" : "#222"});
}
dark.addEventListener("change", paint);
paint();
"""


def write_page(
    elmo: ElmoC, uses: Sequence[Use], output: Path | str, *, title: str, layer: str
) -> None:
    """Write a page that needs no other file, and no network. It draws the uses in their
    first two principal components: of `layer`, and by its buttons of any layer and of
    the average.

    Args:
        elmo, uses, output, title, layer: see `draw_uses`.

    Raises:
        InputError: there are too few uses, or their vectors are equal in all layers.
    """
    views = list(dict.fromkeys([*map(str, range(elmo.layers)), "average", layer]))
    sentences = np.array([_sentence(use) for use in uses])
    figure = Figure(layout=_LAYOUT)
    of_views = use_points(elmo, uses, views, COMPONENTS)
    for view, points in zip(views, of_views, strict=True):
        labels = find_clusters(points)
        for cluster, name in enumerate(cluster_names(uses, labels)):
            inside = labels == cluster
            figure.add_scatter(
                x=points[inside, 0],
                y=points[inside, 1],
                mode="markers",
                # Plotly numbers its symbols, too.
                marker={
                    "symbol": cluster,
                    "size": 9,
                    "opacity": 0.9,
                    "color": qualitative.D3[cluster],
                },
                name=html.escape(f"{shortened(name)} ({inside.sum():,})", quote=False),
                hovertext=sentences[inside],
                hoverinfo="text",
                visible=view == layer,
                meta=view,
            )
    buttons = [
        {
            "label": f"layer {view}",
            "method": "restyle",
            "args": [{"visible": [trace.meta == view for trace in figure.data]}],
        }
        for view in views
    ]
    menu = {
        "type": "buttons",
        "direction": "right",
        # Above the points, at the left.
        "x": 0,
        "xanchor": "left",
        "y": 1.02,
        "yanchor": "bottom",
        # The button that is active is nearly white.
        "bgcolor": "#c3ccd9",
        "font": {"color": "#222"},
        "buttons": buttons,
        "active": views.index(layer),
    }
    figure.update_layout(title_text=html.escape(title, quote=False), updatemenus=[menu])
    with atomic_path(output) as partial:
        figure.write_html(
            partial,
            # Dragging moves the points, the wheel zooms, a double click goes back.
            config={"displayModeBar": False, "scrollZoom": True, "responsive": True},
            post_script=_THEME,
            # The same each time.
            div_id="uses",
        )


def find_clusters(points: np.ndarray) -> np.ndarray:
    """int [n]: the cluster of each point, from 0, by k-means. Of all numbers of
    clusters that with the best silhouette is taken (Rousseeuw 1987).
    """
    distinct = len(np.unique(points, axis=0))
    most = min(MOST_CLUSTERS, distinct, len(points) - 1)
    found = [
        KMeans(count, n_init=10, random_state=0).fit_predict(points)
        for count in range(2, most + 1)
    ]
    alone = np.zeros(len(points), dtype=int)
    return max(found, key=lambda each: silhouette_score(points, each), default=alone)


def cluster_names(uses: Sequence[Use], labels: np.ndarray) -> list[str]:
    """The words that name each cluster of uses: those that its uses have near them much
    more often than all uses have.

    Args:
        uses: of all clusters.
        labels: int [n], the cluster of each use.
    """
    near = np.array([_words(chain(*use.around(NEAR_WORDS))) for use in uses])
    near_all = Counter(chain.from_iterable(near))
    in_sentences = Counter(chain.from_iterable(_words(use.tokens) for use in uses))
    names = []
    for cluster in range(labels.max() + 1):
        inside = near[labels == cluster]
        counts = Counter(chain.from_iterable(inside))
        expected = len(inside) / len(uses)
        ranks = {
            word: (
                in_sentences[word] > COMMON_SHARE * len(uses),
                -count * np.log(count / (near_all[word] * expected)),
                # Where there is one cluster, the commonest words name it.
                -count,
                word,
            )
            for word, count in counts.items()
        }
        names.append(", ".join(sorted(ranks, key=ranks.__getitem__)[:NAMING_WORDS]))
    return names


def _words(tokens: Iterable[str]) -> set[str]:
    """The words among tokens, in lower case."""
    return {each.casefold() for each in tokens if any(map(str.isalpha, each))}


def _sentence(use: Use) -> str:
    """The sentence of a use as Plotly shows it, which reads some HTML."""
    tokens = [
        html.escape(shortened(each, LINE_CHARACTERS), quote=False)
        for each in use.tokens
    ]
    marked = use._replace(tokens=tuple(tokens)).marked("<b>", "</b>")
    return "<br>".join(
        textwrap.wrap(
            marked, LINE_CHARACTERS, break_long_words=False, break_on_hyphens=False
        )
    )
