from django import forms


class NameForm(forms.Form):
    name = forms.CharField(label="Name of the workspace", max_length=100)
