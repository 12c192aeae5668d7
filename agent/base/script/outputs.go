package script

import (
	"fmt"
	"os"
	"path/filepath"
)

// outputsVariable names the folder with the outputs of earlier steps: a file for each, whose name is
// that of the output.
const outputsVariable = "OSUPGRADE_OUTPUTS"

// OutputsEnvironment returns the variable for a folder with outputs; nothing for none.
func OutputsEnvironment(folder string) []string {
	if folder == "" {
		return nil
	}
	return []string{outputsVariable + "=" + folder}
}

// WriteOutputs writes outputs into a folder, a file for each. The error names no value.
func WriteOutputs(folder string, outputs map[string]string) error {
	for name, value := range outputs {
		if name == "" || !filepath.IsLocal(name) || name != filepath.Base(name) || name == "." {
			return fmt.Errorf("%.100q is not the name of an output", name)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(value), 0o600); err != nil {
			return err
		}
	}
	return nil
}
