// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelconfig

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/clip"
)

// OptionError says which of spec.providerOptions cannot be used, and why. It quotes no value.
type OptionError struct {
	// Field is its path below spec.providerOptions; empty for the whole.
	Field string
	// Problem is what is wrong with it, and what would be right.
	Problem string
}

// Error implements error.
func (e *OptionError) Error() string {
	if e.Field == "" {
		return "spec.providerOptions " + e.Problem
	}
	return "spec.providerOptions." + e.Field + " " + e.Problem
}

// CheckOptions reports whether spec.providerOptions are such as the provider takes;
// nil if they are, or if there are none.
func CheckOptions(spec *v1alpha1.ChatModelConfigSpec) *OptionError {
	if spec.ProviderOptions == nil || len(spec.ProviderOptions.Raw) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(spec.ProviderOptions.Raw))
	decoder.UseNumber()
	var given any
	if decoder.Decode(&given) != nil {
		return &OptionError{"", "cannot be read"}
	}
	return object(optionsOf(spec)).check("", given)
}

// kind is what JSON calls a value.
type kind string

const (
	anything  kind = ""
	isBoolean kind = "true or false"
	isText    kind = "a string"
	isInteger kind = "an integer"
	isList    kind = "a list"
	isObject  kind = "an object"
)

// option is what may stand in one place. The zero option is anything.
type option struct {
	kind kind
	// fields of an object; nil for one with fields of any name.
	fields map[string]option
	// each is what a list holds, or an object with fields of any name.
	each *option
	// oneOf are the strings that are taken; nil: any.
	oneOf []string
	// positive wants an integer above 0.
	positive bool
	// exclusive are two fields of an object that may not both be set.
	exclusive [2]string
	// refused is why the option cannot be set, although the provider has it.
	refused string
}

func object(fields map[string]option) option { return option{kind: isObject, fields: fields} }
func mapOf(each option) option               { return option{kind: isObject, each: &each} }
func listOf(each option) option              { return option{kind: isList, each: &each} }

var (
	boolean = option{kind: isBoolean}
	text    = option{kind: isText}
	integer = option{kind: isInteger}
)

func (o option) check(path string, given any) *OptionError {
	switch {
	case o.refused != "":
		return &OptionError{path, "cannot be set: " + o.refused}
	case given == nil || o.kind == anything:
		return nil
	case kindOf(given) != o.kind:
		return &OptionError{path, "must be " + string(o.kind)}
	}
	return o.checkValue(path, given)
}

// checkValue checks a value of the right kind.
func (o option) checkValue(path string, given any) *OptionError {
	switch given := given.(type) {
	case string:
		if o.oneOf != nil && !slices.Contains(o.oneOf, given) {
			return &OptionError{path, "must be one of " + strings.Join(o.oneOf, ", ")}
		}
	case json.Number:
		if n, err := given.Int64(); o.positive && err == nil && n <= 0 {
			return &OptionError{path, "must be above 0"}
		}
	case []any:
		return o.checkList(path, given)
	case map[string]any:
		return o.checkObject(path, given)
	}
	return nil
}

func (o option) checkList(path string, given []any) *OptionError {
	for i := range given {
		if err := o.each.check(path+"["+strconv.Itoa(i)+"]", given[i]); err != nil {
			return err
		}
	}
	return nil
}

func (o option) checkObject(path string, given map[string]any) *OptionError {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if err := o.checkField(below(path, name), name, given[name]); err != nil {
			return err
		}
	}
	if a, b := o.exclusive[0], o.exclusive[1]; a != "" && given[a] != nil && given[b] != nil {
		return &OptionError{path, "may have " + a + " or " + b + ", not both"}
	}
	for name, field := range o.fields {
		if field.positive && given[name] == nil {
			return &OptionError{below(path, name), "must be set"}
		}
	}
	return nil
}

func (o option) checkField(path, name string, given any) *OptionError {
	if o.fields == nil {
		return o.each.check(path, given)
	}
	field, known := o.fields[name]
	if !known {
		return &OptionError{path, "is not known here: the options are " + strings.Join(slices.Sorted(maps.Keys(o.fields)),
			", ")}
	}
	return field.check(path, given)
}

// below is the path of a field of the object at path.
func below(path, name string) string {
	return clip.Ellipsis(strings.TrimPrefix(path+"."+name, "."), maxPath)
}

func kindOf(given any) kind {
	switch given := given.(type) {
	case bool:
		return isBoolean
	case string:
		return isText
	case json.Number:
		if _, err := given.Int64(); err == nil {
			return isInteger
		}
		return "a number"
	case []any:
		return isList
	default:
		return isObject
	}
}

// maxPath is the longest path that is quoted: names in it are what people wrote.
const maxPath = 128
