// Package strict reads JSON that another program wrote: commands and replies of
// Avassa's protocol, files of simulated hosts.
//
// It decides that such a text is one value of known members and nothing else,
// so that a text that resembles what is expected is not taken for it. Package
// document reads what people write and reports every mistake; package format
// reads what this program stores.
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

var errMore = errors.New("more follows after the JSON value; there may be just one")

// JSON reads a text that is exactly one JSON value of known members into value.
func JSON(text []byte, value any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errMore
	}
	return nil
}
