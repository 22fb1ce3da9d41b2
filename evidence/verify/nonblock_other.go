//go:build !unix

package verify

const nonblock = 0
