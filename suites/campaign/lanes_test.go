package campaign

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/matrix"
)

// Every row is carried out once, on a worker whose desk is of the row's kind; another kind of desk opens once, and not in a lane that has more to
// do than the others.
func TestLanes(t *testing.T) {
	g := NewWithT(t)
	var rows []matrix.Contract
	add := func(kind matrix.DeskKind, launch matrix.Launch, n int) {
		for range n {
			rows = append(rows, matrix.Contract{ID: matrix.RowID(fmt.Sprintf("row-%d", len(rows))), Launch: launch, Desk: matrix.DeskPlan{Kind: kind}})
		}
	}
	add(matrix.DeskOpenbox, matrix.LaunchFresh, 7)
	add(matrix.DeskPicom, matrix.LaunchShared, 2)
	add(matrix.DeskOpenbox, matrix.LaunchShared, 9)
	add(matrix.DeskAbove, matrix.LaunchShared, 1)
	out := lanes(rows, 2)
	g.Expect(out).To(HaveLen(2))
	seen, opened := map[matrix.RowID]int{}, map[matrix.DeskKind]int{}
	work := make([]int, 2)
	for i, lane := range out {
		for _, s := range lane {
			opened[s.kind]++
			for _, r := range s.rows {
				g.Expect(r.Desk.Kind).To(Equal(s.kind))
				seen[r.ID]++
				work[i] += cost(r)
			}
			if s.kind != matrix.DeskOpenbox {
				work[i] += stageCost
			}
		}
	}
	g.Expect(seen).To(HaveLen(len(rows)))
	for id, n := range seen {
		g.Expect(n).To(Equal(1), string(id))
	}
	g.Expect(opened).To(Equal(map[matrix.DeskKind]int{matrix.DeskOpenbox: 2, matrix.DeskPicom: 1, matrix.DeskAbove: 1}))
	g.Expect(work[0]).To(BeNumerically("~", work[1], ownCost))

	// A row with hundreds of calls counts for what it is.
	long := matrix.Contract{ID: "long", Launch: matrix.LaunchFresh, Desk: matrix.DeskPlan{Kind: matrix.DeskOpenbox},
		Steps: []matrix.Step{{Verb: "race", Args: map[string]any{"times": 200}, Lanes: [][]matrix.Step{{{Verb: "snapshot"}, {Verb: "type"}}, {{Verb: "type"}}}}}}
	g.Expect(cost(long)).To(Equal(ownCost + 180))
	uneven := lanes(append([]matrix.Contract{long}, rows[:4]...), 2)
	g.Expect(uneven[0][0].rows).To(HaveLen(1))
	g.Expect(uneven[1][0].rows).To(HaveLen(4))

	one := lanes(rows[7:8], 2)
	g.Expect(one).To(HaveLen(1))
	g.Expect(one[0]).To(HaveLen(1))
	g.Expect(one[0][0].kind).To(Equal(matrix.DeskPicom))
}
