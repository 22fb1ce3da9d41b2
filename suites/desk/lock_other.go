//go:build !unix

package desk

import (
	"errors"
	"os"
)

func lock(*os.File) error { return errors.ErrUnsupported }

func ownedByUs(os.FileInfo) bool { return false }
