use prost::Message;
use weft_ir::{DataType, Dimension, Tensor, Value, reference};

use super::*;
use crate::proto::{
    DimensionProto, DimensionValue, ModelProto, OperatorSetIdProto, SparseTensorProto, TensorProto,
    TensorShapeProto, TensorTypeProto, TypeProto, TypeValue,
};

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

fn node(operator: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        op_type: operator.into(),
        name: format!("{operator}_{}", outputs.join("_")),
        input: strings(inputs),
        output: strings(outputs),
        ..NodeProto::default()
    }
}

fn with_attribute(mut node: NodeProto, attribute: AttributeProto) -> NodeProto {
    node.attribute.push(attribute);
    node
}

fn float(name: &str, value: f32) -> AttributeProto {
    let r#type = attribute_type::FLOAT;
    AttributeProto { name: name.into(), f: Some(value), r#type, ..AttributeProto::default() }
}

fn reference_to(name: &str, referenced: &str) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        ref_attr_name: referenced.into(),
        r#type: attribute_type::FLOAT,
        ..AttributeProto::default()
    }
}

fn body(name: &str, graph: GraphProto) -> AttributeProto {
    let r#type = attribute_type::GRAPH;
    AttributeProto { name: name.into(), g: Some(graph), r#type, ..AttributeProto::default() }
}

fn infos(names: &[&str]) -> Vec<ValueInfoProto> {
    names.iter().map(|name| ValueInfoProto { name: name.to_string(), r#type: None }).collect()
}

fn floats(name: &str, values: &[f32]) -> TensorProto {
    TensorProto {
        name: name.into(),
        dims: vec![values.len() as i64],
        data_type: Some(DataType::F32.onnx_code()),
        float_data: values.to_vec(),
        ..TensorProto::default()
    }
}

fn graph(inputs: &[&str], nodes: Vec<NodeProto>, outputs: &[&str]) -> GraphProto {
    GraphProto {
        name: "test".into(),
        node: nodes,
        input: infos(inputs),
        output: infos(outputs),
        ..GraphProto::default()
    }
}

fn import(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) }
}

fn model(graph: GraphProto, functions: Vec<FunctionProto>) -> ModelProto {
    ModelProto {
        ir_version: Some(10),
        graph: Some(graph),
        opset_import: vec![import("", 21), import("local", 1)],
        functions,
        ..ModelProto::default()
    }
}

fn function(name: &str, inputs: &[&str], nodes: Vec<NodeProto>, outputs: &[&str]) -> FunctionProto {
    FunctionProto {
        name: name.into(),
        domain: "local".into(),
        input: strings(inputs),
        output: strings(outputs),
        node: nodes,
        opset_import: vec![import("ai.onnx", 21)],
        ..FunctionProto::default()
    }
}

fn call(name: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto { domain: "local".into(), ..node(name, inputs, outputs) }
}

fn load(model: &ModelProto) -> Result<Graph, LoadError> {
    crate::load_bytes(model.encode_to_vec().into(), None)
}

fn message(model: &ModelProto) -> String {
    load(model).unwrap_err().to_string()
}

/// The outputs for vector inputs, of the model as given and of the model saved and loaded again.
fn run(model: &ModelProto, inputs: &[&[f32]]) -> Vec<Vec<f32>> {
    let loaded = load(model).unwrap();
    let inputs: Vec<Option<Value>> =
        inputs.iter().map(|values| Some(Tensor::vector(values.to_vec()).into())).collect();
    let outputs = |graph: &Graph| -> Vec<Vec<f32>> {
        let values = reference::evaluate(graph, &inputs).unwrap();
        let elements = |value: &Value| value.tensor().unwrap().elements::<f32>().unwrap().to_vec();
        values.iter().map(elements).collect()
    };
    let saved = crate::to_bytes(&loaded).unwrap();
    let again = crate::load_bytes(saved.into(), None).unwrap();
    assert_eq!(outputs(&again), outputs(&loaded));
    outputs(&loaded)
}

#[test]
fn constants_come_in_many_forms() {
    let cases = [
        (
            AttributeProto { i: Some(3), r#type: attribute_type::INT, ..named("value_int") },
            "int64[]",
        ),
        (
            AttributeProto {
                ints: vec![3, 4],
                r#type: attribute_type::INTS,
                ..named("value_ints")
            },
            "int64[2]",
        ),
        (float("value_float", 0.5), "float32[]"),
        (AttributeProto { r#type: attribute_type::FLOATS, ..named("value_floats") }, "float32[0]"),
        (
            AttributeProto {
                strings: vec!["a".into()],
                r#type: attribute_type::STRINGS,
                ..named("value_strings")
            },
            "string[1]",
        ),
        (
            AttributeProto {
                t: Some(floats("", &[1.0, 2.0])),
                r#type: attribute_type::TENSOR,
                ..named("value")
            },
            "float32[2]",
        ),
        (
            AttributeProto {
                sparse_tensor: Some(SparseTensorProto {
                    values: Some(floats("", &[7.0])),
                    indices: Some(TensorProto {
                        dims: vec![1],
                        data_type: Some(DataType::I64.onnx_code()),
                        int64_data: vec![2],
                        ..TensorProto::default()
                    }),
                    dims: vec![4],
                }),
                r#type: attribute_type::SPARSE_TENSOR,
                ..named("sparse_value")
            },
            "float32[4]",
        ),
    ];
    for (attribute, expected) in cases {
        let constant = with_attribute(node("Constant", &[], &["y"]), attribute);
        let loaded = load(&model(graph(&[], vec![constant], &["y"]), vec![])).unwrap();
        let tensor = loaded.constant(loaded.outputs()[0]).unwrap();
        let shape: Vec<String> = tensor.shape().iter().map(usize::to_string).collect();
        assert_eq!(format!("{}[{}]", tensor.data_type(), shape.join(",")), expected);
        assert!(loaded.nodes().is_empty());
    }
    let none = node("Constant", &[], &["y"]);
    let two = with_attribute(
        with_attribute(none.clone(), float("value_float", 1.0)),
        float("value_floats", 1.0),
    );
    for wrong in [none, two] {
        let text = message(&model(graph(&[], vec![wrong], &["y"]), vec![]));
        assert_eq!(text, "node 'Constant_y' (Constant): a constant must have exactly one value");
    }
}

fn named(name: &str) -> AttributeProto {
    AttributeProto { name: name.into(), ..AttributeProto::default() }
}

#[test]
fn functions_are_inlined_with_their_attributes() {
    // y = leaky(leaky(x)) with the slope given once and left to its default once.
    let leaky = FunctionProto {
        attribute_proto: vec![float("slope", 0.5)],
        ..function(
            "Leaky",
            &["a"],
            vec![
                with_attribute(node("LeakyRelu", &["a"], &["t"]), reference_to("alpha", "slope")),
                node("Neg", &["t"], &["u"]),
                node("Neg", &["u"], &["b"]),
            ],
            &["b"],
        )
    };
    let twice = FunctionProto {
        opset_import: vec![import("", 21), import("local", 1)],
        ..function(
            "Twice",
            &["x"],
            vec![
                call("Leaky", &["x"], &["h"]),
                with_attribute(call("Leaky", &["h"], &["y"]), reference_to("slope", "second")),
            ],
            &["y"],
        )
    };
    let second = with_attribute(call("Twice", &["x"], &["y"]), float("second", 0.1));
    let given = model(graph(&["x"], vec![second], &["y"]), vec![leaky.clone(), twice.clone()]);
    assert_eq!(run(&given, &[&[-20.0, 3.0]]), [[-1.0, 3.0]]);
    let left_out =
        model(graph(&["x"], vec![call("Twice", &["x"], &["y"])], &["y"]), vec![leaky, twice]);
    assert_eq!(run(&left_out, &[&[-20.0, 3.0]]), [[-5.0, 3.0]]);
    let names: Vec<String> =
        load(&left_out).unwrap().values().iter().map(|value| value.name.clone()).collect();
    let distinct: HashSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "{names:?}");
}

#[test]
fn a_function_may_hand_out_its_inputs_and_leave_outputs_unasked() {
    let hand_out = function(
        "HandOut",
        &["a", "absent"],
        vec![node("Neg", &["a"], &["n"])],
        &["a", "n", "n", "a"],
    );
    let given = model(
        graph(&["x"], vec![call("HandOut", &["x"], &["p", "q", "r"])], &["p", "q", "r"]),
        vec![hand_out],
    );
    assert_eq!(run(&given, &[&[1.0]]), [[1.0], [-1.0], [-1.0]]);
}

#[test]
fn functions_that_never_end_or_explode_are_refused() {
    let recursive = vec![
        function("A", &["x"], vec![call("B", &["x"], &["y"])], &["y"]),
        function("B", &["x"], vec![call("A", &["x"], &["y"])], &["y"]),
    ];
    let start = |name| graph(&["x"], vec![call(name, &["x"], &["y"])], &["y"]);
    assert!(message(&model(start("A"), recursive)).contains("calls itself"));

    // Each function calls the next twice.
    let doubling = (0..40)
        .map(|level| {
            let next = format!("F{}", level + 1);
            let nodes = vec![call(&next, &["x"], &["h"]), call(&next, &["h"], &["y"])];
            function(&format!("F{level}"), &["x"], nodes, &["y"])
        })
        .chain([function("F40", &["x"], vec![node("Neg", &["x"], &["y"])], &["y"])])
        .collect();
    let exploding = load(&model(start("F0"), doubling)).unwrap_err();
    assert!(matches!(exploding, LoadError::Limit(_)), "{exploding}");

    let deep = (0..200)
        .map(|level| {
            let nodes = vec![call(&format!("F{}", level + 1), &["x"], &["y"])];
            function(&format!("F{level}"), &["x"], nodes, &["y"])
        })
        .chain([function("F200", &["x"], vec![node("Neg", &["x"], &["y"])], &["y"])])
        .collect();
    let nested = load(&model(start("F0"), deep)).unwrap_err();
    assert!(matches!(nested, LoadError::Limit(_)), "{nested}");
}

#[test]
fn old_files_list_their_constants_as_inputs() {
    let with_weight = GraphProto {
        initializer: vec![floats("w", &[2.0])],
        ..graph(&["x", "w"], vec![node("Add", &["x", "w"], &["y"])], &["y"])
    };
    let newer = model(with_weight, vec![]);
    let older = ModelProto { ir_version: Some(3), ..newer.clone() };
    let (newer, older) = (load(&newer).unwrap(), load(&older).unwrap());
    assert_eq!((newer.inputs().len(), newer.required_inputs().count()), (2, 1));
    assert_eq!((older.inputs().len(), older.required_inputs().count()), (1, 1));
}

#[test]
fn declared_types_keep_their_symbols() {
    let dimension = |value| DimensionProto { value };
    let mut given = graph(&["x"], vec![node("Relu", &["x"], &["y"])], &["y"]);
    given.input[0].r#type = Some(TypeProto {
        value: Some(TypeValue::Tensor(TensorTypeProto {
            elem_type: DataType::F32.onnx_code(),
            shape: Some(TensorShapeProto {
                dim: vec![
                    dimension(Some(DimensionValue::Symbol("batch".into()))),
                    dimension(Some(DimensionValue::Size(3))),
                    dimension(Some(DimensionValue::Size(-1))),
                    dimension(None),
                ],
            }),
        })),
    });
    let loaded = load(&model(given, vec![])).unwrap();
    let again = crate::load_bytes(crate::to_bytes(&loaded).unwrap().into(), None).unwrap();
    for graph in [loaded, again] {
        let declared = graph.value(graph.inputs()[0]).declared.clone().unwrap();
        assert_eq!(
            declared.dimensions.unwrap(),
            [
                Dimension::Symbol("batch".into()),
                Dimension::Known(3),
                Dimension::Unknown,
                Dimension::Unknown
            ]
        );
    }
}

#[test]
fn what_is_wrong_is_named() {
    let relu = |input, output| node("Relu", &[input], &[output]);
    let of = |nodes| model(graph(&["x"], nodes, &["y"]), vec![]);
    let mut no_import = of(vec![relu("x", "y")]);
    no_import.opset_import.clear();
    let cases = [
        (of(vec![relu("x", "z")]), "graph 'test': value 'y' is used but nothing produces it"),
        (of(vec![relu("w", "y")]), "graph 'test': value 'w' is used but nothing produces it"),
        (of(vec![relu("x", "y"), relu("x", "y")]), "graph 'test': value 'y' is produced twice"),
        (of(vec![relu("x", "x")]), "graph 'test': value 'x' is produced twice"),
        (of(vec![relu("y", "y")]), "graph 'test': the graph has a cycle through node 'Relu_y'"),
        (
            model(graph(&["x", "x"], vec![], &["x"]), vec![]),
            "graph 'test': value 'x' is produced twice",
        ),
        (
            of(vec![
                node("Foo", &["x"], &["y"]),
                call("Bar", &["x"], &["a"]),
                call("Bar", &["x"], &["b"]),
            ]),
            "2 operators are not supported: Foo (node 'Foo_y'), local.Bar (nodes 'Bar_a', 'Bar_b')",
        ),
        (
            no_import,
            "node 'Relu_y' (Relu): the model does not import the operator set of 'ai.onnx'",
        ),
        (
            ModelProto { opset_import: vec![import("", 6)], ..of(vec![]) },
            "is written in operator set 6; the oldest that is read is 7",
        ),
        (
            ModelProto { ir_version: None, ..of(vec![]) },
            "is of file format 0; the oldest that is read is 3",
        ),
        (ModelProto { graph: None, ..of(vec![]) }, "holds no graph"),
    ];
    for (model, expected) in cases {
        assert_eq!(message(&model), expected);
    }
}

/// `output = condition > 0 ? left : right` where the branches are graphs without inputs.
fn branch(condition: &str, left: GraphProto, right: GraphProto, output: &str) -> NodeProto {
    let branches = with_attribute(node("If", &[condition], &[output]), body("then_branch", left));
    with_attribute(branches, body("else_branch", right))
}

fn is_positive(value: &str, output: &str) -> Vec<NodeProto> {
    let zero = format!("{output}_zero");
    let constant = with_attribute(node("Constant", &[], &[&zero]), float("value_float", 0.0));
    vec![constant, node("Greater", &[value, &zero], &[output])]
}

#[test]
fn bodies_capture_values_through_all_levels() {
    // The inner branches use an input, an initialiser and an intermediate of the outermost graph; names of the
    // branches' own repeat between them, and one is that of a captured value's neighbour.
    let inner = branch(
        "c",
        graph(&[], vec![node("Add", &["x", "w"], &["r"])], &["r"]),
        graph(&[], vec![node("Sub", &["n", "w"], &["r"])], &["r"]),
        "q",
    );
    let outer = branch(
        "c",
        graph(&[], vec![inner, node("Neg", &["q"], &["r"])], &["r"]),
        GraphProto {
            initializer: vec![floats("own", &[100.0])],
            ..graph(&[], vec![node("Add", &["own", "n"], &["r"])], &["r"])
        },
        "y",
    );
    let mut nodes = vec![outer, node("Neg", &["x"], &["n"])];
    nodes.extend(is_positive("x", "c"));
    let given =
        GraphProto { initializer: vec![floats("w", &[10.0])], ..graph(&["x"], nodes, &["y"]) };
    let given = model(given, vec![]);
    assert_eq!(run(&given, &[&[1.0]]), [[-11.0]]);
    assert_eq!(run(&given, &[&[-1.0]]), [[101.0]]);

    let loaded = load(&given).unwrap();
    let outer = loaded.nodes().iter().find(|node| node.operator.name() == "If").unwrap();
    let names: Vec<&str> =
        outer.inputs.iter().map(|id| loaded.value(id.unwrap()).name.as_str()).collect();
    assert_eq!(names, ["c", "c", "x", "w", "n"]);
    for (_, attribute) in outer.origin.as_ref().unwrap().attributes.iter() {
        let Attribute::Graph(body) = attribute else { panic!("both are bodies") };
        assert_eq!((body.captured(), body.inputs().len()), (4, 4));
    }
}

#[test]
fn bodies_in_functions_capture_what_the_function_has() {
    let mut nodes = is_positive("a", "c");
    nodes.push(branch(
        "c",
        graph(&[], vec![node("Add", &["a", "b"], &["r"])], &["r"]),
        graph(
            &[],
            vec![with_attribute(node("LeakyRelu", &["a"], &["r"]), reference_to("alpha", "slope"))],
            &["r"],
        ),
        "y",
    ));
    let choose = function("Choose", &["a", "b"], nodes, &["y"]);
    let start = with_attribute(call("Choose", &["x", "x"], &["y"]), float("slope", 0.25));
    let given = model(graph(&["x"], vec![start], &["y"]), vec![choose]);
    assert_eq!(run(&given, &[&[3.0]]), [[6.0]]);
    assert_eq!(run(&given, &[&[-4.0]]), [[-1.0]]);
}

#[test]
fn bodies_with_names_that_clash_are_told_apart_when_saved() {
    // A body may name a value as the graph around it does; written out, that would be two meanings of one name.
    let mut nodes = is_positive("x", "c");
    nodes.push(branch(
        "c",
        graph(&[], vec![node("Neg", &["x"], &["t"]), node("Neg", &["t"], &["r"])], &["r"]),
        graph(&[], vec![node("Neg", &["t"], &["r"])], &["r"]),
        "y",
    ));
    nodes.push(node("Abs", &["x"], &["t"]));
    let given = model(graph(&["x"], nodes, &["y", "t"]), vec![]);
    assert_eq!(run(&given, &[&[3.0]]), [[3.0], [3.0]]);
    assert_eq!(run(&given, &[&[-3.0]]), [[-3.0], [3.0]]);
}

#[test]
fn bodies_are_limited_in_number_and_their_problems_named() {
    let empty = || graph(&[], vec![node("Neg", &["x"], &["r"])], &["r"]);
    let mut crowded = branch("x", empty(), empty(), "y");
    for index in 0..MAX_BODIES {
        crowded = with_attribute(crowded, body(&format!("more_{index}"), empty()));
    }
    let text = message(&model(graph(&["x"], vec![crowded], &["y"]), vec![]));
    assert_eq!(text, "node 'If_y' (If): has more bodies than the limit of 8");

    let broken = graph(&[], vec![node("Neg", &["nowhere"], &["r"])], &["r"]);
    let text =
        message(&model(graph(&["x"], vec![branch("x", broken, empty(), "y")], &["y"]), vec![]));
    let expected =
        "node 'If_y' (If): graph 'test': value 'nowhere' is used but nothing produces it";
    assert_eq!(text, expected);

    let unknown = graph(&[], vec![node("Foo", &["x"], &["r"])], &["r"]);
    let nested = model(graph(&["x"], vec![branch("x", unknown, empty(), "y")], &["y"]), vec![]);
    assert_eq!(message(&nested), "1 operator is not supported: Foo (node 'Foo_r')");
}
