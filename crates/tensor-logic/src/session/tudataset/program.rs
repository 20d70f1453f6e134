//! The program beside the relations: two layers of `std/gin.tl`, the mean over the nodes of a graph, a softmax.

use std::collections::BTreeSet;
use std::fmt::Write;

/// What the program says of a data set.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub name: &'a str,
    pub graphs: usize,
    pub nodes: usize,
    pub classes: BTreeSet<i64>,
    /// Which files there are.
    pub node_labels: bool,
    pub edge_labels: bool,
    pub attributes: bool,
}

/// The program.
pub(super) fn program(of: &Facts<'_>) -> String {
    let classes: Vec<String> = of.classes.iter().map(i64::to_string).collect();
    let (graphs, nodes) = (of.graphs, of.nodes);
    let name: String = of.name.chars().filter(|letter| !letter.is_control()).collect();
    let mut text = format!(
        "# {name}: which class has a graph? Two layers of a graph isomorphism network, the mean over the nodes.
# The best epoch is kept: the one with the lowest loss over the graphs that `valid` holds out.
s : 1..{graphs}
x : 1..{nodes}
Class : {{{}}}
c : Class
d : 16
Edge = \"Edge.csv\"
In = \"In.csv\"
GraphLabel = \"GraphLabel.csv\"
",
        classes.join(", ")
    );
    text.push_str(&features(of));
    // Of two graphs a fifth is none.
    let valid = if graphs > 2 { ", valid=0.2, patience=20" } else { "" };
    let size = (graphs / 5).clamp(1, 32);
    // A string takes everything.
    let _ = write!(
        text,
        "@include(\"std/gin.tl\", as=First, X=Feature, H=Inner, f=16, e=d)
Active[x, d] = relu(Inner[x, d])
@include(\"std/gin.tl\", as=Second, X=Active, H=Outer, f=16, e=d)

Graph[s, d] avg= In(s, x) relu(Outer[x, d])
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
        text.push_str("# The kinds of arcs are in \"EdgeLabel.csv\": from, to, kind. `std/rgcn.tl` has a matrix for each.\n");
    }
    if of.node_labels {
        text.push_str("NodeLabel = \"NodeLabel.csv\"\nOfLabel[l, d] ~ glorot()\n");
        terms.push("NodeLabel(x, l) OfLabel[l, d]");
    }
    if of.attributes {
        text.push_str("NodeAttribute = \"NodeAttribute.csv\" as values\nOfAttribute[k, d] ~ glorot()\n");
        terms.push("NodeAttribute(x, k) OfAttribute[k, d]");
    }
    if terms.is_empty() {
        text.push_str("Same[d] ~ normal(0, 1)\n");
        terms.push("In(s, x) Same[d]");
    }
    text + "Feature[x, d] = " + &terms.join(" + ") + "\n"
}
