package apt

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// recorded returns what a real apt or dpkg of Debian 12 printed, and its exit status:
// the first line of the file.
func recorded(t testing.TB, name string) (exit int, printed string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "recorded", name))
	if err != nil {
		t.Fatal(err)
	}
	first, printed, _ := strings.Cut(string(data), "\n")
	exit, err = strconv.Atoi(strings.TrimPrefix(first, "exit "))
	if err != nil {
		t.Fatalf("%s begins with %q, which is no exit status", name, first)
	}
	return exit, printed
}

// statusOf returns what a real apt wrote to APT::Status-Fd.
func statusOf(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "recorded", "status-fd"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
