package evidence

// personCases are about what became of the person's input (D7), and about input that is nobody's (D4).
func personCases() []vector {
	row := typeRow()
	person := func(edit func(*Person)) []Observation {
		return change(goodType(), with(KindPerson, func(o *Observation) { edit(o.Person) }))
	}
	return []vector{
		{"person_input_twice", row, person(func(p *Person) { p.Duplicated = 1 }), Fail, []string{"D7 person_input_duplicated"}},
		{"person_input_out_of_order", row, person(func(p *Person) { p.Disordered = 1 }), Fail, []string{"D7 person_input_disordered"}},
		{"person_input_late", row, person(func(p *Person) { p.LatestNS = 1_500_000_000 }), Fail, []string{"D7 person_input_late"}},
		{"person_input_late_while_the_harness_was_starved", row, change(person(func(p *Person) { p.LatestNS = 1_500_000_000 }),
			with(KindHeartbeat, func(o *Observation) { o.Heartbeat.MaxGapNS = 400_000_000 })), EnvironmentUnmet, []string{"J5 clock_starved"}},
		{"input_that_the_person_did_not_make", row, person(func(p *Person) { p.Foreign = 2 }), Fail, []string{"D4 input_leaked"}},
		{"forged_input_at_the_person", row, person(func(p *Person) { p.Forged = 1 }), Fail, []string{"D4 input_forged"}},
		{"stray_input_at_the_bystander", row, person(func(p *Person) { p.Stray = 1 }), Fail, []string{"D4 input_leaked"}},
		{"person_unknown", row, change(goodType(), without(isKind(KindPerson))), HarnessError, []string{"D7 too_few_seen"}},
	}
}
