package matrix

import (
	"encoding/json"

	"github.com/engine-acceptance/acceptance/engine"
)

// SchemaID names the JSON Schema of row files.
const SchemaID = "https://engine-acceptance.github.io/schema/rows.schema.json"

// object is one JSON Schema.
type object = map[string]any

// variableText is a scalar that stands for a variable of the row's axes.
var variableText = object{"type": "string", "pattern": `^\$\{[a-z][a-z_]*\}$`}

// orVariable lets a typed value be written as one ${variable}.
func orVariable(s object) object { return object{"anyOf": []any{s, variableText}} }

func words[T ~string](list []T) object { return orVariable(object{"enum": list}) }

func text(doc string) object { return object{"type": "string", "description": doc} }

func closed(required []string, properties object) object {
	s := object{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func listOf(s object) object { return object{"type": "array", "minItems": 1, "items": s} }

// oneOrMore is a list, or a single entry in its place.
func oneOrMore(s object) object { return object{"anyOf": []any{listOf(s), s}} }

func described(s object, doc string) object {
	out := object{"description": doc}
	for k, v := range s {
		out[k] = v
	}
	return out
}

// Schema returns the JSON Schema (2020-12) of row files, made from [Verbs] and the closed lists of the contract. Editors read it from
// matrix/schema/rows.schema.json. It is looser than [Load] where only the whole matrix can tell: names, references, requirements.
func Schema() []byte {
	duration := object{"type": "string", "pattern": `^([0-9.]+(ms|s|m|h))+$|^\$\{[a-z][a-z_]*\}$`}
	integer := orVariable(object{"type": "integer"})
	boolean := orVariable(object{"type": "boolean"})
	pageName := orVariable(object{"type": "string", "pattern": pageForm.String()})
	role := closed([]string{"role", "name"}, object{"role": text("the accessible role"), "name": text("the accessible name"), "frame": words(frames)})

	var steps []any
	for _, v := range Verbs {
		properties := object{"name": text("how expectations refer to the step")}
		var required []string
		for _, f := range v.Fields {
			var s object
			switch f.Kind {
			case FieldInt:
				s = orVariable(object{"type": "integer", "minimum": f.Low, "maximum": f.High})
			case FieldWindow:
				s = orVariable(object{"type": "integer", "minimum": 1, "maximum": 8})
			case FieldBool:
				s = boolean
			case FieldDuration:
				s = duration
			case FieldEnum:
				s = words(f.Words)
			case FieldPage:
				s = pageName
			case FieldArgs:
				s = object{"type": "object"}
			case FieldSteps:
				s = listOf(object{"$ref": "#/$defs/step"})
			case FieldLanes:
				s = object{"type": "array", "minItems": 2, "maxItems": maxLanes, "items": listOf(object{"$ref": "#/$defs/step"})}
			default:
				s = object{"type": "string"}
			}
			properties[f.Name] = described(s, f.Doc)
			if f.Required {
				required = append(required, f.Name)
			}
		}
		step := closed([]string{v.Name}, object{v.Name: described(closed(required, properties), v.Doc)})
		steps = append(steps, step)
	}

	axisWord := object{"type": "string", "pattern": axisValueForm.String()}
	combination := object{"type": "array", "items": object{"type": "object", "minProperties": 1}}
	tab := closed([]string{"page"}, object{"page": orVariable(object{"type": "string", "pattern": tabPageForm.String()}), "title": text("overrides the page's title"), "visible": boolean})
	window := closed([]string{"tabs"}, object{
		"opened": words([]string{"launch", "person", "page"}),
		"hidden": words(hiddenWays),
		"bounds": closed([]string{"x", "y", "w", "h"}, object{"x": integer, "y": integer, "w": integer, "h": integer}),
		"tabs":   listOf(tab),
	})
	flags := object{}
	for _, name := range sideEffects {
		flags[name] = boolean
	}
	detail := object{}
	for _, name := range refusalDetail {
		detail[name] = object{"type": []any{"string", "integer"}}
	}
	expect := closed(nil, object{
		"effect": described(oneOrMore(closed([]string{"page"}, object{
			"page": text("the tab"), "control": text("its data-control name"), "value": text("the control's final value"), "event": text("an event type"),
			"count": integer, "at_least": integer, "trusted": boolean, "loaded": pageName,
		})), "changes that a page must have reported"),
		"elsewhere": described(words([]string{"silent"}), "silent: nothing beside the effects saw an event or changed"),
		"receipt": oneOrMore(closed([]string{"of"}, object{
			"of": text("the step"), "effect": object{"anyOf": []any{words(effects), listOf(words(effects))}}, "trust": words(trusts), "route": words(engine.Routes),
			"side_effects": closed(nil, flags), "value_before": text("what the receipt says was replaced"), "within": duration,
		})),
		"refusal": oneOrMore(closed([]string{"of", "trigger"}, object{
			"of": text("the step"), "trigger": text("the entry of the refusal table; it gives the code"), "detail": closed(nil, detail),
			"within": duration,
		})),
		"bind": oneOrMore(closed([]string{"of", "quality"}, object{
			"of": text("the step"), "quality": words([]engine.Quality{engine.QualityExact, engine.QualityHeuristic, engine.QualityNone}), "tabs": integer,
			"active": words([]string{"true", "false", "null"}), "within": duration,
		})),
		"snapshot":   oneOrMore(closed([]string{"of"}, object{"of": text("the step"), "has": listOf(role), "lacks": listOf(role), "either": listOf(listOf(role))})),
		"profile":    closed([]string{"of", "posture"}, object{"of": text("the prepare step"), "posture": words(postures)}),
		"probes":     words([]string{"none"}),
		"generation": oneOrMore(closed([]string{"before", "after"}, object{"before": text("a bind"), "after": text("a later bind")})),
		"rounds": oneOrMore(closed([]string{"of", "delivered", "refused"}, object{"of": text("a repeated step"), "delivered": integer,
			"refused": listOf(text("a trigger that the other calls may be refused with"))})),
		"identifiers": words([]string{"hidden"}), "forged": words([]string{"named"}),
		"blocks": described(oneOrMore(closed([]string{"of", "delivered"}, object{
			"of": text("the block: a repeat or a race"), "delivered": orVariable(object{"type": "string", "pattern": share.String() + "|^none$"}),
			"refused": oneOrMore(text("a trigger that runs may be refused with")),
			"refusals": oneOrMore(closed([]string{"trigger"}, object{"trigger": text("the entry of the refusal table"), "code": words(engine.Codes), "detail": closed(nil, detail),
				"within": duration})),
			"lands": oneOrMore(closed([]string{"page", "control"}, object{"page": text("the tab"), "control": text("the data-control name that texts go to")})),
		})), "what the runs of a block must show, together"),
	})
	expect["minProperties"] = 1
	row := closed([]string{"id", "requirement", "title", "launch", "steps", "budget"}, object{
		"id":          described(object{"type": "string", "pattern": stemForm.String()}, "the file's name, or begins with it"),
		"requirement": described(object{"type": "string", "pattern": requirementForm.String()}, "an entry of requirements.yaml"),
		"aspect":      text("the part of the requirement, where it has parts"),
		"title":       text("what is proven, as a sentence"),
		"axes": described(object{"type": "object", "minProperties": 1, "propertyNames": object{"pattern": axisForm.String()}, "additionalProperties": object{"anyOf": []any{
			listOf(axisWord), object{"type": "object", "minProperties": 1, "propertyNames": object{"pattern": axisValueForm.String()},
				"additionalProperties": object{"type": "object"}}}}}, "the row becomes one row for each combination; ${axis} stands for the value"),
		"include": combination,
		"exclude": combination,
		"needs": described(closed([]string{"action", "route", "delivery", "state"}, object{"action": words(engine.Actions), "route": words(engine.Routes),
			"delivery": words(engine.Deliveries), "state": words(engine.States)}), "the capability; where it is not declared the row expects its refusal"),
		"only":   words([]Only{OnlyDeclared, OnlyUndeclared}),
		"launch": words([]Launch{LaunchFresh, LaunchShared, LaunchNone}),
		"desk": closed(nil, object{"kind": words(DeskKinds), "windows": listOf(window), "person": words([]Person{PersonCovers, PersonPartlyCovers, PersonBeside}),
			"decoys": listOf(words(decoys)), "machine": words(Machines)}),
		"steps":        listOf(object{"$ref": "#/$defs/step"}),
		"expect":       expect,
		"budget":       described(duration, "with its unit, at most 120s"),
		"with":         listOf(text("a feature that the engine must claim")),
		"without":      listOf(text("a feature that the engine must not claim")),
		"products":     listOf(words(products)),
		"environments": listOf(object{"type": "string", "pattern": environmentForm.String()}),
	})
	schema := closed([]string{"format", "rows"}, object{"format": object{"const": RowsFormat}, "rows": listOf(row)})
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["$id"] = SchemaID
	schema["$defs"] = object{"step": object{"oneOf": steps}}
	schema["title"] = "Acceptance rows"
	b, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		// Every value above is a plain map, list or word.
		panic("schema of rows: " + err.Error())
	}
	return append(b, '\n')
}
