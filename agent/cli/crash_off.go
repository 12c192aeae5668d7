//go:build !crash

package cli

// crashPoint is nothing but in a program that is built to crash at each
// labelled action, for tests.
func crashPoint(string) func(label string) { return nil }
