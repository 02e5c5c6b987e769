/**
 * Returns the value of an object's own key; undefined for any other, such as "constructor" or
 * "toString", which every object inherits. For keys that people or programs chose. Pure.
 */
export function own(object, key) {
  return object && Object.hasOwn(object, key) ? object[key] : undefined;
}
