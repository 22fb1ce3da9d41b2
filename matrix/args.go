package matrix

import "time"

// The accessors below read a field of a step as [Verbs] types it. A field that is not there, or is of another type, reads as the zero
// value; what a loaded row holds was checked. They read a step from memory and one that went through JSON alike.

// Has says whether the step gives the field.
func (s Step) Has(field string) bool { _, ok := s.Args[field]; return ok }

// Text reads a text, a word, a name or a page, with its {{variables}} as written.
func (s Step) Text(field string) string { v, _ := s.Args[field].(string); return v }

// Int reads a whole number.
func (s Step) Int(field string) int {
	switch v := s.Args[field].(type) {
	case int:
		return v
	case float64:
		if v == float64(int(v)) {
			return int(v)
		}
	}
	return 0
}

// Bool reads true or false.
func (s Step) Bool(field string) bool { v, _ := s.Args[field].(bool); return v }

// Duration reads a duration.
func (s Step) Duration(field string) time.Duration {
	d, err := time.ParseDuration(s.Text(field))
	if err != nil {
		return 0
	}
	return d
}

// Tab reads a tab reference, and Node a node reference.
func (s Step) Tab(field string) TabRef {
	ref, err := ParseTabRef(s.Text(field))
	if err != nil {
		return TabRef{}
	}
	return ref
}

// Node reads a node reference.
func (s Step) Node(field string) NodeRef {
	ref, err := ParseNodeRef(s.Text(field))
	if err != nil {
		return NodeRef{}
	}
	return ref
}

// Raw reads the raw arguments of call.
func (s Step) Raw(field string) map[string]any { v, _ := s.Args[field].(map[string]any); return v }
