package matrix_test

import (
	"github.com/engine-acceptance/acceptance/matrix/refusal"
)

// table is the refusal vocabulary that these tests load with.
var table = func() *refusal.Table {
	t, err := refusal.Load()
	if err != nil {
		panic(err)
	}
	return t
}()
