# tries: to print a million empty lines around the answer
# path: stdin
# observed: output_limit

answer = " ".join(sorted(input().split()))
print("\n" * 500_000 + answer + "\n" * 500_000)
