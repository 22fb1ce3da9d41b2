//go:build !linux

package desk

func inMemory(string) bool { return false }
