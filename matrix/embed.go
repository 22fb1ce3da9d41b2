package matrix

import (
	"embed"
	"io/fs"
)

//go:embed requirements.yaml profiles.yaml environments.yaml rows engines policies
var data embed.FS

// Embedded returns the matrix that the binary was built with: every data file, as [Load] reads it.
func Embedded() fs.FS { return data }
