// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package toolpage

import (
	"fmt"
	"reflect"
	"strings"

	"parley.dev/parley/hack/gen/markdown"
)

// resultRows are those of the fields of a result.
func resultRows(result any) ([][]string, error) {
	t := reflect.TypeOf(result)
	if t == nil || t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%T is no struct", result)
	}
	return fieldRows("", t)
}

func fieldRows(path string, t reflect.Type) (rows [][]string, err error) {
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		doc := field.Tag.Get("doc")
		if name == "" || doc == "" {
			return nil, fmt.Errorf("the field %s of %s lacks the tag json or doc", field.Name, t)
		}
		kind, within := fieldType(field.Type)
		if options != "" {
			kind += ", optional"
		}
		rows = append(rows, []string{"`" + path + name + "`", kind, markdown.Cell(doc)})
		if within != nil {
			nested, err := fieldRows(path+name+"[].", within)
			if err != nil {
				return nil, err
			}
			rows = append(rows, nested...)
		}
	}
	return rows, nil
}

// fieldType is the type of a field in words, and the struct that a list consists of.
func fieldType(t reflect.Type) (name string, within reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer:
		return fieldType(t.Elem())
	case reflect.Bool:
		return "boolean", nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "integer", nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return "list", t.Elem()
		}
		return "list of texts", nil
	}
	return "text", nil
}
