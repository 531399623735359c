// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"encoding/json"
	"fmt"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval"
)

// callable is the tool of a call. The error tells the model why the call is not run.
func (r *Registry) callable(call *Call) (Tool, error) {
	name := call.Name
	switch call.Refusal { // These two are also of calls of a client's tools, which no registry has.
	case v1alpha1.RefusalCutByLength:
		return nil, fmt.Errorf("tool %q was not run: your reply reached its limit of tokens within the input of this call; "+
			"call it again with less input, in several calls if need be", name)
	case v1alpha1.RefusalInputInvalid:
		return nil, fmt.Errorf("tool %q was not run: its input must be a JSON object, but is %s; call it again with a JSON "+
			"object, {} if there are no arguments", name, describeInput(call.Input))
	}
	tool, err := r.offered(call.Chat, name)
	if err != nil {
		return nil, err
	}
	switch call.Refusal {
	case v1alpha1.RefusalNotAllowed:
		return nil, fmt.Errorf("tool %q was not active in this chat when it was called, so it is not known whether "+
			"the call requires approval: call it again", name)
	case v1alpha1.RefusalInputTooLarge:
		return nil, approval.TooLarge(call.Input)
	}
	return tool, nil
}

// describeInput says what an input is that is no JSON object.
func describeInput(input string) string {
	var value json.RawMessage
	if err := json.Unmarshal([]byte(input), &value); err != nil {
		return fmt.Sprintf("not JSON (%v)", err)
	}
	switch value[0] {
	case '"':
		return "a JSON string: send the object itself, without quotes around it"
	case '[':
		return "a list"
	case 't', 'f':
		return "a boolean"
	}
	return "a number"
}
