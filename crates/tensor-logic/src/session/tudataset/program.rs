//! The program beside the relations: two layers of the network of `std/gin.tl`, the mean over the nodes of a graph, a
//! softmax. The layers are rules over samples, for what a batch needs of a relation with the sample in it is its own rows.

use std::collections::BTreeSet;
use std::fmt::Write;

/// What the program says of a data set.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub name: &'a str,
    pub graphs: usize,
    pub classes: BTreeSet<i64>,
    /// The labels of nodes, if there are any.
    pub node_labels: Option<BTreeSet<i64>>,
    /// Whether there are labels of arcs.
    pub edge_labels: bool,
    /// The mean and the spread of each number that nodes have, if they have any.
    pub attributes: Option<Vec<(f64, f64)>>,
}

/// The program.
pub(super) fn program(of: &Facts<'_>) -> String {
    let graphs = of.graphs;
    let name: String = of.name.chars().filter(|letter| !letter.is_control()).collect();
    let mut text = format!(
        "# {name}: which class has a graph? Two layers of a graph isomorphism network (`std/gin.tl`), the mean over the nodes.
# The best epoch is kept: the one with the lowest loss over the graphs that `valid` holds out.
# Every relation has the graph in its first place: a batch of graphs computes what these graphs need.
s : 1..{graphs}
Class : {{{}}}
c : Class
d : 16
f : 16
Edge = \"Edge.csv\"
In = \"In.csv\"
GraphLabel = \"GraphLabel.csv\"
",
        listed(&of.classes)
    );
    text.push_str(&features(of));
    text.push_str(&layer(1, "Feature", "Inner"));
    text.push_str(&layer(2, "Inner", "Outer"));
    // Of two graphs a fifth is none.
    let valid = if graphs > 2 { ", valid=0.2, patience=20" } else { "" };
    let size = (graphs / 5).clamp(1, 32);
    // A string takes everything.
    let _ = write!(
        text,
        "
Graph[s, d] avg= In(s, x) Outer(s, x, d)
Weight[d, c] ~ glorot()
Bias[c] ~ zeros()
Logit[s, c] = Graph[s, d] Weight[d, c] + Bias[c]
Answer[s, c.] = softmax(Logit[s, c])
Loss avg= -GraphLabel(s, c) log(Answer[s, c])
Loss? @minimize(opt=adam, lr=0.01, clip=1, batch=s, size={size}, shuffle=1, epochs=100{valid})

# Of all graphs, those that it has learned from among them.
Best[s] max= Answer[s, c]
Right(s) <- GraphLabel(s, c), Answer[s, c] >= Best[s]
Accuracy = count[s](Right(s)) / {graphs}
Accuracy?
"
    );
    text
}

/// What the first layer sees of a node.
fn features(of: &Facts<'_>) -> String {
    let (mut text, mut terms) = (String::new(), Vec::new());
    if of.edge_labels {
        text.push_str("# The kinds of arcs are in \"EdgeLabel.csv\": graph, from, to, kind. `std/rgcn.tl` has a matrix for each.\n");
    }
    // A string takes everything.
    if let Some(labels) = &of.node_labels {
        let _ = writeln!(text, "Label : {{{}}}\nl : Label", listed(labels));
        text.push_str("NodeLabel = \"NodeLabel.csv\"\nOfLabel[l, d] ~ glorot()\n");
        terms.push("NodeLabel(s, x, l) OfLabel[l, d]");
    }
    if let Some(attributes) = &of.attributes {
        let means: Vec<String> = attributes.iter().map(|(mean, _)| format!("{mean:?}")).collect();
        let spreads: Vec<String> = attributes.iter().map(|(_, spread)| format!("{spread:?}")).collect();
        let _ = writeln!(
            text,
            "NodeAttribute = \"NodeAttribute.csv\" as values\n# Attributes are learned from as distances from their means, in standard deviations.\n\
             Mean[k] = [{}]\nSpread[k] = [{}]\nOfAttribute[k, d] ~ glorot()",
            means.join(", "),
            spreads.join(", ")
        );
        terms.push("(NodeAttribute(s, x, k) - Mean[k]) / Spread[k] OfAttribute[k, d]");
    }
    if terms.is_empty() {
        text.push_str("Same[d] ~ normal(0, 1)\n");
        terms.push("In(s, x) Same[d]");
    }
    text + "Feature(s, x, d) += " + &terms.join(" + ") + "\n"
}

/// A layer: the equations of `std/gin.tl` in rules over samples, and relu.
fn layer(number: usize, from: &str, to: &str) -> String {
    let n = number;
    format!(
        "
Eps{n} ~ 0
In{n}[d, f] ~ he()
InBias{n}[f] ~ zeros()
Out{n}[f, d] ~ glorot()
OutBias{n}[d] ~ zeros()
Sum{n}(s, x, d) += (1 + Eps{n}) {from}(s, x, d) + Edge(s, y, x) {from}(s, y, d)
Hidden{n}(s, x, f) += relu(Sum{n}(s, x, d) In{n}[d, f] + In(s, x) InBias{n}[f])
{to}(s, x, d) += relu(Hidden{n}(s, x, f) Out{n}[f, d] + In(s, x) OutBias{n}[d])
"
    )
}

/// Numbers with commas between them.
fn listed(numbers: &BTreeSet<i64>) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}
