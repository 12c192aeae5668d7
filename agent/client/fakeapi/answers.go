package fakeapi

import (
	"encoding/json"
	"net/http"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// answer writes body as JSON.
func answer(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic("fakeapi: cannot write an answer as JSON: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // A client that has gone is the client's matter.
}

// refuse writes an error body of Avassa's shape (design.md 7).
func refuse(w http.ResponseWriter, status int, problems ...v1.Error) {
	answer(w, status, v1.ErrorBody{Errors: problems})
}
